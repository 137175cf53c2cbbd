"""NUM006: a draft of several MTP layers of which one drafts."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.deployment.model import MTP_KEYS
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.facts.budget import TOKENS


@rule(
    "NUM006",
    "idle-mtp-layers",
    severity="warning",
    evidence=["vllm-project/vllm#52688", "vllm/v1/spec_decode/llm_base_proposer.py: propose"],
)
def idle_mtp_layers(
    draft: Draft,
    serving: Serving,
    method: str,
    engine: Engine,
    runner: str,
    draft_classes: DraftClasses,
    draft_tokens: int,
) -> Iterator[Finding]:
    """All steps of the draft go through its first MTP layer."""
    if method != "mtp":
        raise NotApplicable("no built-in draft")
    if not draft_classes.count_known:
        raise MissingFact(f"how many MTP layers {draft.config.file} states")
    layers = draft_classes.n_predict
    if layers is None or layers < 2 or draft_tokens < 2:
        return
    numbered = known(engine.numbers.steps_numbered, f"which MTP layer {engine} drafts with")
    if runner == "V1":
        if "V1" in numbered or draft_classes.model_type in engine.numbers.steps_by_type:
            return
    elif runner in numbered and draft.integer("num_nextn_predict_layers") > 1:
        return
    stated = draft.config.stated(*MTP_KEYS)
    yield Finding(
        f"The draft has {layers} MTP layers, and {engine}'s {runner} runner drafts all {draft_tokens} tokens with the "
        "first one: the others are loaded, take memory and are never run, and acceptance falls with each step.",
        serving.at(f"speculative.{TOKENS}"),
        "silent",
        "likely",
        related=(draft.config.at(stated[0]),) if stated else (),
        repair=Repair(
            "manual", "num_speculative_tokens 1, or measure how far acceptance holds", ("speculative_config",)
        ),
    )
