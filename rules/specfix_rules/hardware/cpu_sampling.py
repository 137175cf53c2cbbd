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
def cpu_sampling(hardware: Hardware, serving: Serving, engine: Engine, stand_ins: bool) -> Iterator[Finding]:
    """With its stand-in kernels, this release cannot serve requests with a temperature on a CPU."""
    if serving.greedy:
        raise NotApplicable("every request is greedy")
    if not stand_ins or not known(engine.cpu.sampling_expands_copy, f"how {engine} expands sampling parameters"):
        return
    yield Finding(
        f"On a CPU {engine} leaves temperature, top_k and top_p of the drafted positions uninitialised. A request "
        "with a temperature samples from garbage, or the engine dies with an index out of bounds. Greedy requests "
        "are served right.",
        serving.at("greedy"),
        "runtime",
        related=(hardware.at("platform"),),
        repair=Repair(
            "safe",
            "a shim expands them in PyTorch (not needed where every request is greedy: say --greedy)",
            ("shim",),
            (("shim", "cpu_sampling", {}),),
        ),
    )
