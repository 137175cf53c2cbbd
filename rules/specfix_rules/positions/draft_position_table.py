"""POS001: the draft cannot follow the sequences that it will be fed."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Change, Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact
from specfix.facts.lengths import raises_positions, size_only
from specfix.facts.positions import Shortfall, consequence

KEY = "max_position_embeddings"


@rule(
    "POS001",
    "draft-position-table",
    severity="error",
    evidence=["vllm-project/vllm#48894", "vllm-project/vllm#49343", "vllm-project/vllm#57941"],
    requires=["MTH006", "POS003", "POS006", "POS008", "POS009"],
)
def draft_position_table(
    target: Target,
    draft: Draft,
    serving: Serving,
    engine: Engine,
    method: str,
    served_length: int,
    shortfalls: tuple[Shortfall | None, ...],
) -> Iterator[Finding]:
    """The draft's positions end before the sequences that it will be fed."""
    failures = [short for short in shortfalls if short is not None and short.kind != "shortens"]
    if not failures:
        return
    if len(failures) < len(shortfalls):
        raise MissingFact(f"which model runner {engine} chooses")
    lifted = raises_positions(draft, method, engine)
    told = [consequence(short, serving.enforce_eager, lifted, engine) for short in failures]
    asked = target.at(KEY) if serving.max_model_len is None else serving.at("max_model_len")
    message = (
        f"The draft has {draft.number(KEY)} positions ({KEY}{draft.config.source(KEY)}), and sequences of up to "
        f"{served_length} tokens are served. "
        + " Or, where the other runner is chosen: ".join(text for _, text in told)
    )
    yield Finding(
        message,
        draft.at(KEY),
        told[0][0],
        "certain" if len(told) == 1 else "likely",
        related=(asked,),
        repair=repair(draft, served_length, method, engine),
    )


def by_shim(draft: Draft, served_length: int) -> tuple[Change, ...]:
    """The same for a draft that is served from where it is, by the path that the engine will be given."""
    return (("shim", "draft_positions", {"draft": draft.served, KEY: served_length}),)


def repair(draft: Draft, served_length: int, method: str, engine: Engine) -> Repair:
    """More rows where max_position_embeddings only sizes the table; else a shorter context, for the user to choose."""
    if method == "draft_model":
        return Repair(
            "manual",
            f"lower --max-model-len, or take a draft model that reaches {served_length} tokens: it cannot be led "
            "past the positions that it was trained on",
            ("engine_args",),
        )
    # other keys that state a length bound the derived one as well
    keys = dict.fromkeys((KEY, *(engine.lengths.keys or ()), engine.lengths.overriding_key or KEY))
    short = [key for key in keys if (draft.number(key) or served_length) < served_length]
    if short and size_only(draft):
        return Repair(
            "safe",
            f"set {' and '.join(short)} to {served_length} in the draft's config.json; the weights stay as they are",
            ("draft_config",),
            tuple(("draft_config", draft.at(key).pointer, served_length) for key in short),
            by_shim=by_shim(draft, served_length) if short == [KEY] else (),
        )
    types = ", ".join(sorted({rope.rope_type for rope in draft.ropes}))
    return Repair(
        "manual",
        f"lower --max-model-len, or take a draft trained for {served_length} positions: with rope_type {types} the "
        f"frequencies depend on the length, so {KEY} cannot simply be raised",
        ("engine_args",),
    )
