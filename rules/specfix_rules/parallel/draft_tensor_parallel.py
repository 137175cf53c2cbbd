"""PAR007: a tensor parallel size of the draft that the release refuses."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.parallel import DRAFT_TP, WITHOUT_DRAFT, draft_parallel_size


@rule(
    "PAR007",
    "draft-tensor-parallel",
    severity="error",
    evidence=[
        "vllm-project/vllm#10483",
        "vllm/config/speculative.py: _verify_and_get_draft_tp",
        "vllm/v1/spec_decode/draft_model.py: _raise_if_draft_tp_mismatch",
    ],
)
def draft_tensor_parallel(serving: Serving, method: str, engine: Engine, runners: tuple[str, ...]) -> Iterator[Finding]:
    """The draft is to be cut into a number of parts that the release does not take."""
    if serving.speculative.get(DRAFT_TP) is None or method in WITHOUT_DRAFT:
        raise NotApplicable("the draft is cut as the target is")
    asked, target = draft_parallel_size(serving), serving.tensor_parallel_size
    if asked == target:
        return
    phase = "config"
    if asked == 1:
        same = known(engine.parallel.draft_tp_same, f"what {engine} makes of {DRAFT_TP}")
        if method not in same or "V1" not in runners:
            return
        if runners != ("V1",):
            raise MissingFact(f"which model runner {engine} chooses")
        taken, phase = f"{target} (tensor_parallel_size) alone for {method}", "load"
    elif known(engine.parallel.draft_tp_refused, f"what {engine} makes of {DRAFT_TP}"):
        taken = f"1 or {target} (tensor_parallel_size)"
    else:
        return
    yield Finding(
        f"{DRAFT_TP} is {asked}, and {engine} takes {taken}: it refuses to start.",
        serving.at(f"speculative.{DRAFT_TP}"),
        "config" if phase == "config" else "load",
        related=(serving.at("tensor_parallel_size"),),
        repair=Repair(
            "safe", f"leave {DRAFT_TP} out", ("speculative_config",), (("speculative_config", DRAFT_TP, None),)
        ),
    )
