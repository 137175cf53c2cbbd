"""QNT010: the draft is quantised, and its layers are built without its quantisation."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.quantisation import draft_quantised, stated

METHODS = ("eagle", "eagle3", "dflash")


@rule(
    "QNT010",
    "draft-quantisation-unread",
    severity="error",
    requires=["QNT002", "QNT004"],
    evidence=["vllm-project/vllm#28435", "vllm/model_executor/models/llama_eagle3.py", "vllm-project/vllm#25883"],
)
def draft_quantisation_unread(
    target: Target, draft: Draft, engine: Engine, method: str, quant_origin: str | None = None
) -> Iterator[Finding]:
    """A quantised draft is built plain."""
    if method not in METHODS or stated(draft, engine) is None:
        raise NotApplicable("the draft is no quantised head")
    known(quant_origin, f"whose quantisation {engine} builds the draft with")
    plain = quant_origin == "none" or (quant_origin == "target" and stated(target, engine) is None)
    if not plain:
        raise NotApplicable("the draft's layers are built quantised")
    if not draft_quantised(draft):
        return
    whose = "without any quantisation" if quant_origin == "none" else "with its target's, which has none"
    yield Finding(
        f"The draft is quantised, and {engine} builds its layers {whose}: its packed weights and scales have no place, "
        "and loading the draft fails.",
        draft.at("quantization_config"),
        "load",
        repair=Repair(
            "manual", "take a draft that is not quantised, or a release that builds drafts with their own quantisation"
        ),
    )
