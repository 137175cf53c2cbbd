"""HWR003: a CPU runner that never asks the target for aux hidden states."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.aux import AUX_METHODS


@rule(
    "HWR003",
    "cpu-aux-setup",
    severity="error",
    evidence=["vllm-project/vllm#42468", "vllm/v1/worker/cpu_model_runner.py"],
)
def cpu_aux_setup(serving: Serving, hardware: Hardware, engine: Engine, method: str) -> Iterator[Finding]:
    """On a CPU this release does not set up the target's aux hidden states."""
    if hardware.platform != "cpu" or engine.cpu.refuses is not None or method not in AUX_METHODS:
        raise NotApplicable("no aux hidden states on a CPU")
    if known(engine.cpu.aux_setup, f"whether the CPU runner of {engine} sets up aux hidden states"):
        return
    yield Finding(
        f"{method} reads aux hidden states of the target, and the CPU runner of {engine} loads the models without "
        "setting them up: the first step fails with `too many values to unpack (expected 2)`.",
        serving.at("method"),
        "warmup",
        related=(hardware.at("platform"),),
        repair=Repair(
            "safe",
            "a shim does the set-up after loading, as later releases do",
            ("shim",),
            (("shim", "cpu_aux_setup", {}),),
        ),
    )
