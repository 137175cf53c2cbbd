"""HWR002: stand-ins for Triton kernels that do not take their caller's arguments."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine


@rule("HWR002", "cpu-stand-in-kernels", severity="error", evidence=["vllm/utils/cpu_triton_utils.py"])
def cpu_stand_in_kernels(serving: Serving, hardware: Hardware, engine: Engine) -> Iterator[Finding]:
    """On a CPU this release calls its own stand-in kernels with arguments that they do not know."""
    if hardware.platform != "cpu" or engine.cpu.refuses is not None:
        return
    for call in engine.cpu.stand_ins:
        unexpected = ", ".join(call.unexpected)
        yield Finding(
            f"On a CPU {engine} replaces the Triton kernel {call.kernel} by a stand-in that does not know {unexpected}, and "
            f"{call.file} passes it: a TypeError in every step that verifies drafts, the warm-up included.",
            serving.at("method"),
            "warmup",
            related=(hardware.at("platform"),),
            repair=Repair("safe", f"a shim lets the stand-in accept {unexpected}, which changes nothing on a CPU", ("shim",)),
        )
