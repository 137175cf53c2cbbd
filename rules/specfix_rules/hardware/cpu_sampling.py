"""HWR005: sampled requests with speculation on a CPU."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known


@rule(
    "HWR005",
    "cpu-sampling",
    severity="error",
    evidence=["vllm-project/vllm#55005", "vllm/v1/sample/rejection_sampler.py: expand_batch_to_tokens"],
)
def cpu_sampling(hardware: Hardware, serving: Serving, engine: Engine, has_triton: bool) -> Iterator[Finding]:
    """Without Triton, speculation on a CPU cannot serve requests with a temperature."""
    if hardware.platform != "cpu" or engine.cpu.refuses is not None:
        return
    if serving.greedy:
        raise NotApplicable("every request is greedy")
    if has_triton or not known(engine.cpu.sampling_expands_copy, f"how {engine} expands sampling parameters on a CPU"):
        return
    yield Finding(
        f"Without Triton, {engine} on a CPU leaves temperature, top_k and top_p of the drafted positions "
        "uninitialised. A "
        "request with a temperature then samples from garbage, or the engine dies with an index out of bounds. Greedy "
        "requests are not affected.",
        serving.at("greedy"),
        "runtime",
        related=(hardware.at("triton_installed"),),
        repair=Repair("safe", "say --greedy if every request is; else a shim expands them in PyTorch", ("shim",)),
    )
