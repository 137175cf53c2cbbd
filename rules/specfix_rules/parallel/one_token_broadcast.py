"""PAR002: pipeline stages that hand on one sampled token, and more of them are accepted."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known


@rule(
    "PAR002",
    "one-token-broadcast",
    severity="error",
    evidence=[
        "vllm-project/vllm#57755",
        "vllm/v1/worker/gpu_model_runner.py: _pp_broadcast_prev_sampled_token_ids",
    ],
    requires=["PAR001"],
)
def one_token_broadcast(
    serving: Serving, method: str, engine: Engine, runners: tuple[str, ...], async_scheduling: bool
) -> Iterator[Finding]:
    """The V1 runner's last pipeline stage hands on one token a request, and dies of accepted drafts."""
    stages = serving.pipeline_parallel_size
    if stages <= 1:
        raise NotApplicable("no pipeline stages")
    if not known(engine.parallel.one_token_broadcast, f"what the stages of {engine} hand on") or "V1" not in runners:
        raise NotApplicable("the stages hand on all tokens")
    if not async_scheduling:
        return
    if runners != ("V1",):
        raise MissingFact(f"which model runner {engine} chooses")
    if serving.flag("distributed_executor_backend") == "external_launcher":
        raise NotApplicable("each rank is told of the output")
    asked = serving.flag("async_scheduling") is True
    yield Finding(
        f"pipeline_parallel_size is {stages} and scheduling is asynchronous{'' if asked else ', as by default'}: the "
        "last "
        f"stage of {engine}'s V1 runner hands on one sampled token a request, and asserts that there are no more. With "
        "the first batch of drafts there are, and the engine dies.",
        serving.at("pipeline_parallel_size"),
        "runtime",
        related=(serving.at("async_scheduling"),),
        repair=Repair(
            "unsafe",
            "--no-async-scheduling, which costs throughput; or --pipeline-parallel-size 1",
            ("engine_args",),
            (("engine_args", "async-scheduling", False),),
        ),
    )
