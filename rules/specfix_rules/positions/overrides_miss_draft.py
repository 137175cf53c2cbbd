"""POS003: --hf-overrides lengthen the target, and the draft in its own checkpoint stays as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specfix.checker import Change, Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, known
from specfix.facts.lengths import raises_positions, size_only
from specfix.facts.overrides import FLAG, ROPE
from specfix.facts.positions import Shortfall, consequence

KEY = "max_position_embeddings"
THETA = "rope_theta"


@rule(
    "POS003",
    "overrides-miss-draft",
    severity="error",
    evidence=["vllm-project/vllm#58080", "vllm-project/vllm#37443"],
    requires=["POS006", "POS008", "POS009"],
)
def overrides_miss_draft(
    target: Target,
    draft: Draft,
    serving: Serving,
    engine: Engine,
    method: str,
    served_length: int | None = None,
    shortfalls: tuple[Shortfall | None, ...] | None = None,
) -> Iterator[Finding]:
    """The draft keeps the length that the checkpoint's own config states."""
    if not draft.is_part_of(target):
        return
    changes = missing(target, draft, engine)
    if not changes:
        return
    served_length = known(served_length, "the length that is served")
    shortfalls = known(shortfalls, f"how far the {method} draft reaches")
    failures = [short for short in shortfalls if short is not None and short.kind != "shortens"]
    if not failures:
        return
    if len(failures) < len(shortfalls):
        raise MissingFact(f"which model runner {engine} chooses")
    lifted = raises_positions(draft, method, engine)
    told = [consequence(short, serving.enforce_eager, lifted, engine) for short in failures]
    rows_only = all(name.rpartition("/")[2] not in (*ROPE, THETA) for _, name, _ in changes) and size_only(draft)
    set_by_flag = ", ".join(name for _, name, _ in changes)
    yield Finding(
        f"--hf-overrides set {set_by_flag} of the target, and sequences of up to {served_length} tokens are served. "
        f"{engine} does not hand them on to the {method} draft in the same checkpoint, which keeps "
        f"{draft.number(KEY)} positions. " + " Or, where the other runner is chosen: ".join(text for _, text in told),
        serving.at(FLAG),
        told[0][0],
        "certain" if len(told) == 1 else "likely",
        related=(draft.at(KEY),),
        repair=Repair(
            "safe" if rows_only else "unsafe",
            "give the draft a config.json of its own that states the same"
            + ("" if rows_only else "; the draft's RoPE changes with it, so look at the acceptance"),
            ("draft_config",),
            changes,
        ),
    )


def missing(target: Target, draft: Draft, engine: Engine) -> tuple[Change, ...]:
    """What the flag sets of lengths and RoPE, as changes of the draft's config."""
    keys = {*ROPE, THETA, "original_max_position_embeddings", *(engine.lengths.keys or ())}
    keys |= {engine.lengths.overriding_key or KEY}
    return tuple(
        ("draft_config", f"{pointer}/{key}", value)
        for pointer, level in target.config.levels
        for key, value in level.items()
        if key in keys and value != at(draft.config.values, pointer).get(key)
    )


def at(values: Mapping[str, Any], pointer: str) -> Mapping[str, Any]:
    """The object at a pointer of inner configs."""
    for key in pointer.split("/")[1:]:
        values = values.get(key) or {}
    return values
