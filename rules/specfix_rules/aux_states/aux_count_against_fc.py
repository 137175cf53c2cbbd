"""AUX004: another number of aux layers than the head's weights were made for."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.facts.aux import AuxPlan, aux_location

FC = ("fc.weight", "model.fc.weight")


@rule(
    "AUX004",
    "aux-count-against-fc",
    severity="error",
    evidence=["vllm-project/vllm#48113"],
    requires=["AUX002", "AUX003"],
)
def aux_count_against_fc(target: Target, draft: Draft, engine: Engine, method: str, aux_plan: AuxPlan) -> Iterator[Finding]:
    """The width of ``fc.weight`` contradicts the number of aux layers."""
    hidden = draft.number("target_hidden_size") or target.integer("hidden_size")
    fc = draft.tensor(*FC)
    width = fc.shape[-1]
    expected = hidden * len(aux_plan.ids)
    if width == expected:
        return
    made_for = f"{width // hidden} aux layers" if width % hidden == 0 else f"another hidden size than {hidden}"
    source = f"the draft names {list(aux_plan.ids)}" if aux_plan.place else f"{engine} guesses {list(aux_plan.ids)}"
    yield Finding(
        f"fc.weight takes {width} inputs, so the head was made for {made_for}, but {source}: "
        f"{len(aux_plan.ids)} states of {hidden} are {expected} inputs.",
        aux_location(draft, aux_plan),
        "load",
        related=(draft.config.at("/hidden_size"), target.at("hidden_size")),
        repair=Repair("manual", "take the draft that was trained for this target, or write the ids that it was trained with", ("draft_config",)),
    )
