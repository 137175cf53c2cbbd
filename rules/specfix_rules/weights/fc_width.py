"""WGT001: ``fc`` was made for other inputs than the release builds it for."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.aux import AuxPlan
from specfix.facts.weights import DraftHead, fc_inputs, reads_no_states


@rule(
    "WGT001",
    "fc-width",
    severity="error",
    evidence=["vllm-project/vllm#48113", "vllm/model_executor/models/qwen3_dflash.py"],
)
def fc_width(
    target: Target, draft: Draft, method: str, draft_head: DraftHead, aux_plan: AuxPlan | None = None
) -> Iterator[Finding]:
    """The width of ``fc.weight`` is not what an EAGLE, DFlash or DSpark head is built with."""
    if method == "eagle3" or reads_no_states(draft_head):
        raise NotApplicable("EAGLE3's fc has a rule of its own")
    built, made = fc_inputs(draft_head, aux_plan)
    fc = draft_head.plain("fc.weight")
    if fc is None:
        raise MissingFact(f"an unpacked fc.weight in the safetensors header of {draft.reference}")
    if fc.shape[-1] == built:
        return
    width, hidden = fc.shape[-1], draft_head.number("target_hidden_size") or draft_head.hidden
    whole = f"{width // hidden} of {hidden}" if width % hidden == 0 else f"no multiple of {hidden}"
    at = draft.at("hidden_size") if method == "eagle" or aux_plan is None else aux_plan.location(draft)
    yield Finding(
        f"fc.weight takes {width} inputs ({whole}), and the release builds fc for {built} ({made}): the weights do not "
        "load.",
        at,
        "load",
        related=(target.at("hidden_size"),),
        repair=Repair("manual", "take the config.json that was published with these weights", ("draft_config",)),
    )
