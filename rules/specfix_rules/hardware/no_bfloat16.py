"""HWR011: bfloat16 on a GPU that has none."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts.served_dtype import machine_dtypes

DTYPE = "bfloat16"


@rule(
    "HWR011",
    "no-bfloat16",
    severity="error",
    evidence=["vllm/platforms/cuda.py: check_if_supports_dtype", "vllm/v1/worker/gpu_worker.py"],
)
def no_bfloat16(serving: Serving, hardware: Hardware, engine: Engine) -> Iterator[Finding]:
    """--dtype bfloat16 on a GPU that is older than bfloat16."""
    if serving.dtype != DTYPE or hardware.platform != "cuda":
        raise NotApplicable("left to itself the engine takes a dtype that the machine has")
    has = machine_dtypes(hardware, engine)
    if DTYPE in has:
        return
    yield Finding(
        f"--dtype is {DTYPE}, and {engine} serves in {', '.join(has)} on {hardware.name} (compute capability "
        f"{'.'.join(map(str, hardware.compute_capability or ()))}): it refuses to start.",
        serving.at("dtype"),
        "load",
        related=(hardware.at("compute_capability"),),
        repair=Repair("unsafe", "serve in float16", ("engine_args",), (("engine_args", "dtype", "float16"),)),
    )
