"""PAR008: a tensor parallel size of the draft that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.parallel import DRAFT_TP, WITHOUT_DRAFT, draft_parallel_size


@rule(
    "PAR008",
    "draft-tensor-parallel-idle",
    severity="note",
    evidence=["vllm-project/vllm#31345", "vllm/v1/spec_decode"],
    requires=["PAR007"],
)
def draft_tensor_parallel_idle(draft: Draft, serving: Serving, method: str, engine: Engine) -> Iterator[Finding]:
    """The draft is cut as the target is, whatever is asked for."""
    if serving.speculative.get(DRAFT_TP) is None or method in WITHOUT_DRAFT:
        raise NotApplicable("nothing is asked for")
    asked, target = draft_parallel_size(serving), serving.tensor_parallel_size
    heeded = known(engine.parallel.draft_tp_heeded, f"what of {engine} reads {DRAFT_TP}")
    if asked == target or "" in heeded or method in heeded:
        return
    yield Finding(
        f"{DRAFT_TP} is {asked} and tensor_parallel_size {target}: {engine} builds a draft of the method {method} in "
        "the "
        f"target's group, so that it is cut into {target} parts all the same.",
        serving.at(f"speculative.{DRAFT_TP}"),
        "silent",
        related=(serving.at("tensor_parallel_size"),),
        repair=Repair("manual", f"leave {DRAFT_TP} out: it changes nothing", ("speculative_config",)),
    )
