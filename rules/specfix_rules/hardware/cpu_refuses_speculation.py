"""HWR001: a release whose CPU runner refuses to speculate."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine


@rule(
    "HWR001",
    "cpu-refuses-speculation",
    severity="error",
    evidence=["vllm-project/vllm#28384", "vllm/v1/worker/cpu_model_runner.py"],
)
def cpu_refuses_speculation(serving: Serving, hardware: Hardware, engine: Engine, method: str) -> Iterator[Finding]:
    """This release does not speculate on a CPU at all."""
    if hardware.platform != "cpu" or engine.cpu.refuses is None:
        return
    yield Finding(
        f"{engine} refuses any speculative decoding on a CPU ({engine.cpu.refuses}); {method} is asked for.",
        serving.at("method"),
        "load",
        related=(hardware.at("platform"),),
        repair=Repair("manual", "take a release that speculates on a CPU, or serve without a draft", ("engine_args",)),
    )
