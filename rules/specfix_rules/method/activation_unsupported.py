"""MTH012: an activation that the class does not have."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import known
from specfix.facts.architecture import DraftClasses, served_classes

KEY = "hidden_act"
SILU = "silu"


@rule(
    "MTH012",
    "activation-unsupported",
    severity="error",
    evidence=["vllm/model_executor/models/llama.py: LlamaMLP", "vllm/model_executor/models/qwen2.py: Qwen2MLP"],
    requires=["MTH001", "MTH002", "MTH003"],
)
def activation_unsupported(
    target: Target, engine: Engine, draft: Draft | None = None, draft_classes: DraftClasses | None = None
) -> Iterator[Finding]:
    """hidden_act is not silu, and the release's class of the model takes nothing else."""
    only = known(engine.traits.silu_only, f"the activations that classes of {engine} take")
    for side, model, name in served_classes(target, draft, draft_classes, engine):
        if name not in only or len(model.config.levels) > 1:
            continue
        found = model.config.stated(KEY)
        if found is None or found[1] == SILU:
            continue
        yield Finding(
            f"The {side}'s hidden_act is {show(found[1])}, and {name} of {engine} takes {SILU} alone: the start ends "
            "when its layers are made.",
            model.config.at(found[0]),
            "load",
            repair=Repair(
                "manual", "take a checkpoint of this class as it was trained, or a release that knows its own"
            ),
        )
