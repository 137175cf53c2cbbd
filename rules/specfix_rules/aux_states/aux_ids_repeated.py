"""AUX002: one layer twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import known
from specfix.facts.aux import AuxPlan, mismatch_phase


@rule("AUX002", "aux-ids-repeated", severity="error", evidence=["vllm-project/vllm#48113", "vllm-project/vllm#48259"])
def aux_ids_repeated(
    target: Target, draft: Draft, engine: Engine, aux_plan: AuxPlan, runners: tuple[str, ...]
) -> Iterator[Finding]:
    """An aux layer is named twice, and one layer yields one state."""
    repeated = sorted(number for number, times in Counter(aux_plan.ids).items() if times > 1)
    if not repeated or not known(engine.eagle.aux_deduplicates, f"whether {engine} yields a repeated aux layer twice"):
        return
    yield Finding(
        f"{aux_plan.said(draft, engine)}: {repeated[0]} more than once, but a layer yields one state. "
        f"{len(set(aux_plan.ids))} states arrive where the draft expects {len(aux_plan.ids)}, and drafting fails on "
        "their shape.",
        aux_plan.location(draft),
        mismatch_phase(runners),
        related=(target.at("num_hidden_layers"),),
        repair=Repair(
            "manual",
            "write the layer ids that the head was trained with; they cannot be told from its weights",
            ("draft_config",),
        ),
    )
