"""AUX003: a layer that the target does not have."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import known
from specfix.facts.architecture import architecture_of
from specfix.facts.aux import AuxPlan, mismatch_phase


@rule(
    "AUX003", "aux-ids-out-of-range", severity="error", evidence=["vllm-project/vllm#48113", "vllm-project/vllm#48259"]
)
def aux_ids_out_of_range(
    target: Target, draft: Draft, engine: Engine, aux_plan: AuxPlan, runners: tuple[str, ...]
) -> Iterator[Finding]:
    """An aux layer id lies outside the target's layers."""
    layers = target.integer("num_hidden_layers")
    # id i is the state that layer i reads: the number of layers is the last layer's output, which nearly all give
    last = layers - 1 if engine.eagle.aux_final_layer.get(architecture_of(target, engine)) is False else layers
    outside = [i for i in aux_plan.ids if i < 0 or i > last]
    if not outside or not known(
        engine.eagle.aux_deduplicates, f"what {engine} does with an aux layer that is not there"
    ):
        return
    yield Finding(
        f"{aux_plan.said(draft, engine)}, and the target has {layers} layers: {outside[0]} is none of them. No state "
        f"arrives for it under {engine}, and drafting fails on the shape of what does.",
        aux_plan.location(draft),
        mismatch_phase(runners),
        related=(target.at("num_hidden_layers"),),
        repair=Repair(
            "manual",
            "the head was trained for another target, or in another numbering: take the one made for this target",
            ("draft_config",),
        ),
    )
