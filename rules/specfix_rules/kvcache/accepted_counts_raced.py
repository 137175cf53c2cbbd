"""KVC008: counts of accepted tokens that may go to another request."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known


@rule(
    "KVC008",
    "accepted-counts-raced",
    severity="warning",
    evidence=[
        "vllm-project/vllm#53912",
        "vllm-project/vllm#47194",
        "vllm-project/vllm#53919",
        "vllm/v1/worker/gpu_model_runner.py: _prepare_inputs",
    ],
    requires=["KVC004", "KVC005", "KVC007"],
)
def accepted_counts_raced(
    serving: Serving,
    engine: Engine,
    method: str,
    recurrent_mode: str,
    runner: str | None = None,
    async_scheduling: bool | None = None,
    hardware: Hardware | None = None,
) -> Iterator[Finding]:
    """Prefix caching, asynchronous scheduling and recurrent layers: accepted tokens may be counted for another row."""
    if hardware is not None and hardware.platform == "cpu":
        raise NotApplicable("nothing is copied to the host")
    if serving.max_num_seqs == 1:
        raise NotApplicable("a batch of one row has none to confuse it with")
    raced = engine.blocks.recurrent.counts_raced
    if recurrent_mode != "align" or not known(raced, f"when {engine} waits for the counts of accepted tokens"):
        return
    if known(runner, f"which model runner {engine} chooses") != "V1":
        raise NotApplicable("the counts are kept by another runner")
    if not known(async_scheduling, f"whether {engine} schedules asynchronously"):
        return
    yield Finding(
        f"With prefix caching, asynchronous scheduling and {method}, {engine} copies the counts of accepted tokens to "
        "the host without waiting for the copy before the rows of the batch move. Under load a request may go on from "
        "another one's state, and the wrong state stays in the prefix cache: garbled output and broken tool calls, "
        "without a message.",
        serving.at("enable_prefix_caching"),
        "silent",
        "likely",
        related=(serving.at("async_scheduling"),),
        repair=Repair(
            "unsafe",
            "--no-enable-prefix-caching (or --no-async-scheduling): slower, and no count is read from the host",
            ("engine_args",),
            (("engine_args", "enable_prefix_caching", False), ("engine_args", "mamba_cache_mode", None)),
        ),
        # most servers never meet it: where nobody asked for what it takes, it is worth knowing, no more
        severity="warning" if serving.flag("enable_prefix_caching") else "note",
    )
