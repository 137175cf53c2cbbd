"""POS009: the speculative config gives the draft less than it has."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.lengths import longest, own_length
from specfix.facts.positions import Shortfall, consequence

KEY = "max_model_len"


@rule(
    "POS009",
    "draft-length-lowered",
    severity="error",
    evidence=["vllm/config/speculative.py: _maybe_override_draft_max_model_len"],
    requires=["CFG002", "POS006", "POS008"],
)
def draft_length_lowered(
    draft: Draft,
    serving: Serving,
    engine: Engine,
    served_length: int,
    shortfalls: tuple[Shortfall | None, ...],
) -> Iterator[Finding]:
    """Drafting ends at max_model_len of the speculative config, where the draft itself reaches further."""
    given = own_length(serving)
    if given is None:
        raise NotApplicable("the draft is given no length of its own")
    derived = longest(draft, engine)
    own = served_length if derived is None else min(int(derived), served_length)
    lowered = [short for short in shortfalls if short is not None and short.limit == given and short.kind != "overruns"]
    if given >= own or not lowered:
        return
    if len(lowered) < len(shortfalls):
        raise MissingFact(f"which model runner {engine} chooses")
    if lowered[0].kind == "shortens":
        phase, told = "runtime", f"{engine} lowers the length that is served to it: longer requests are refused."
    else:
        phase, told = consequence(lowered[0], serving.enforce_eager, False, engine)
    yield Finding(
        f"{KEY} is {given} in the speculative config; the draft reaches {own} tokens, and {served_length} are served. "
        + told,
        serving.at(f"speculative.{KEY}"),
        "runtime" if phase == "runtime" else "silent",
        related=(draft.at("max_position_embeddings"),),
        repair=Repair(
            "safe",
            f"leave {KEY} out of the speculative config: the draft is then used as far as it reaches",
            ("speculative_config",),
            (("speculative_config", KEY, None),),
        ),
    )
