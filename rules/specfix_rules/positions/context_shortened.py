"""POS002: the engine serves a shorter context than asked for, because of the draft."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact
from specfix.facts.positions import Shortfall

KEY = "max_position_embeddings"


@rule(
    "POS002",
    "context-shortened",
    severity="warning",
    evidence=["vllm/config/vllm.py: _limit_max_model_len_to_draft"],
    requires=["MTH006", "POS006", "POS008", "POS009"],
)
def context_shortened(
    target: Target,
    draft: Draft,
    serving: Serving,
    engine: Engine,
    served_length: int,
    shortfalls: tuple[Shortfall | None, ...],
) -> Iterator[Finding]:
    """The draft's length becomes the length that is served."""
    shortened = [short for short in shortfalls if short is not None and short.kind == "shortens"]
    if not shortened:
        return
    if len(shortened) < len(shortfalls):
        raise MissingFact(f"which model runner {engine} chooses")
    limit = shortened[0].limit
    asked = serving.max_model_len is not None
    yield Finding(
        f"{served_length} tokens are to be served, and the draft's length is {limit}. {engine} lowers the target's "
        f"max_model_len to {limit} and starts: longer requests are refused one by one.",
        draft.at(KEY),
        "runtime",
        related=(serving.at("max_model_len") if asked else target.at(KEY),),
        repair=Repair(
            "manual",
            f"serve with --max-model-len {limit}, or take a draft that reaches {served_length}",
            ("engine_args",),
        ),
        # asked for by name, requests of that length are meant to be served, and will fail
        severity="error" if asked else "warning",
    )
