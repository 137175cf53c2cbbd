"""PAR001: pipeline stages with a draft whose class knows none."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.facts.parallel import WITHOUT_DRAFT


@rule(
    "PAR001",
    "draft-not-pipelined",
    severity="error",
    evidence=[
        "vllm-project/vllm#36643",
        "vllm-project/vllm#50514",
        "vllm/config/speculative.py: create_draft_parallel_config",
    ],
)
def draft_not_pipelined(
    draft: Draft, serving: Serving, method: str, engine: Engine, draft_classes: DraftClasses
) -> Iterator[Finding]:
    """Pipeline parallelism is asked for, and the draft's class does not support it."""
    stages = serving.pipeline_parallel_size
    if stages <= 1 or method in WITHOUT_DRAFT:
        raise NotApplicable("no pipeline stages that a draft would share")
    if not known(engine.parallel.draft_pipelined, f"whether {engine} cuts drafts into pipeline stages"):
        raise NotApplicable("the draft stays on the last stage")
    name = next((one for one in draft_classes.built if one in engine.methods.architectures), None)
    if name is None:
        raise MissingFact(f"the class that {engine} builds the draft of")
    what = f"whether {name} of {engine} supports pipeline parallelism"
    lacking = known(engine.parallel.unpipelined, what)
    if f"parallel.unpipelined.{name}" in engine.unknown:
        raise MissingFact(what)
    if name not in lacking:
        return
    yield Finding(
        f"pipeline_parallel_size is {stages}; {engine} gives the draft as many stages, and {name} supports none: "
        '"Pipeline parallelism is not supported for this model", and it does not start.',
        serving.at("pipeline_parallel_size"),
        "config",
        related=(draft.at("architectures"),),
        repair=Repair(
            "manual",
            f"--pipeline-parallel-size 1 and a larger --tensor-parallel-size ({serving.tensor_parallel_size * stages} "
            "for the same devices), or no speculation",
            ("engine_args",),
        ),
    )
