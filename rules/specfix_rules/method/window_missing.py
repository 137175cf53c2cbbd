"""MTH013: layers with a sliding window, and no size of it."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Model, Target
from specfix.engines import Engine
from specfix.errors import known
from specfix.facts.architecture import DraftClasses, served_classes

TYPES, SLIDING, WINDOW = "layer_types", "sliding_attention", "sliding_window"


@rule(
    "MTH013",
    "window-missing",
    severity="error",
    evidence=["vllm/model_executor/models/llama.py: LlamaAttention"],
    requires=["MTH001", "MTH002", "MTH003"],
)
def window_missing(
    target: Target, engine: Engine, draft: Draft | None = None, draft_classes: DraftClasses | None = None
) -> Iterator[Finding]:
    """layer_types names layers with a sliding window, and the config has no sliding_window."""
    reading = known(engine.traits.window_read, f"the classes of {engine} that read {WINDOW}")
    for side, model, name in served_classes(target, draft, draft_classes, engine):
        found = model.config.stated(TYPES)
        if name not in reading or found is None or SLIDING not in found[1]:
            continue
        if any(WINDOW in level for _, level in model.config.levels) or WINDOW in fields(model):
            continue
        yield Finding(
            f"The {side}'s {TYPES} names layers of {SLIDING}, and its config has no {WINDOW}; neither does its class "
            f"give one. {name} of {engine} dies of that when it makes the layer.",
            model.config.at(found[0]),
            "load",
            repair=Repair("manual", f"write the {WINDOW} that the model was trained with"),
        )


def fields(model: Model) -> tuple[str, ...]:
    """WINDOW, where the config's class has such a field, whatever its value."""
    given = model.config.absent(WINDOW) if model.config.absent else None
    return () if given is None else (WINDOW,)
