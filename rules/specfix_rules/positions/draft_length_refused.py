"""POS008: the speculative config's max_model_len is more than the draft or the target has."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.lengths import derived_length, longest, may_pass, own_length
from specfix.facts.positions import SHARES_POSITIONS

KEY = "max_model_len"


@rule(
    "POS008",
    "draft-length-refused",
    severity="error",
    evidence=["vllm/config/speculative.py: _maybe_override_draft_max_model_len"],
    requires=["CFG002", "POS006"],
)
def draft_length_refused(
    draft: Draft, serving: Serving, engine: Engine, method: str, served_length: int
) -> Iterator[Finding]:
    """max_model_len of the speculative config passes the draft's length or the target's, or the draft has none."""
    given = own_length(serving)
    if given is None and method in SHARES_POSITIONS | {"draft_model"} and engine.lengths.refuses_none:
        yield from no_length(draft, engine)
        return
    if given is None or method not in SHARES_POSITIONS | {"draft_model"}:
        raise NotApplicable("the draft is given no length of its own")
    bounds = known(engine.lengths.own_bounded_by, f"what {engine} makes of {KEY} in the speculative config")
    derived = longest(draft, engine)
    of_draft = derived is not None and "draft" in bounds and given > derived
    if of_draft and known(engine.lengths.own_is_draft_length, f"whether {engine} asks the draft for {KEY}"):
        of_draft = not may_pass(given, draft, serving, engine)
    limits = {"the draft": int(derived)} if of_draft and derived is not None else {}
    if "target" in bounds and given > served_length:
        limits["the target"] = served_length
    if not limits:
        return
    side, limit = min(limits.items(), key=lambda item: item[1])
    yield Finding(
        f"{KEY} is {given} in the speculative config, and {side} has {limit} tokens: {engine} refuses to start.",
        serving.at(f"speculative.{KEY}"),
        "config",
        related=(draft.at("max_position_embeddings") if side == "the draft" else serving.at(KEY),),
        repair=Repair(
            "safe",
            f"leave {KEY} out of the speculative config: the release then takes the smaller of the two lengths",
            ("speculative_config",),
            (("speculative_config", KEY, None),),
        ),
    )


def no_length(draft: Draft, engine: Engine) -> Iterator[Finding]:
    """A length below 1 that the draft's own config makes."""
    derived = derived_length(draft, engine)
    if derived is None or derived >= 1:
        return
    keys = known(engine.lengths.keys, f"the keys from which {engine} derives a length")
    key = next((key for key in keys if (stated := draft.number(key)) is not None and stated < 1), keys[0])
    yield Finding(
        f"The draft's config makes its length {derived} ({key}), and {engine} takes none below 1: it refuses to start.",
        draft.at(key),
        "config",
        repair=Repair(
            "manual", f"take {key} out, or put in the length that the draft was trained for", ("draft_config",)
        ),
    )
