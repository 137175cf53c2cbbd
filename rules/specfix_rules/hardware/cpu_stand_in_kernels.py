"""HWR002: stand-ins for Triton kernels that do not take their caller's arguments."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.engines.facts import StandIn


@rule("HWR002", "cpu-stand-in-kernels", severity="error", evidence=["vllm/utils/cpu_triton_utils.py"])
def cpu_stand_in_kernels(serving: Serving, hardware: Hardware, engine: Engine) -> Iterator[Finding]:
    """On a CPU this release launches kernels in a way that fails."""
    if hardware.platform != "cpu" or engine.cpu.refuses is not None:
        return
    for call in engine.cpu.stand_ins:
        what, repair = fault(call)
        yield Finding(
            f"On a CPU {engine} replaces the Triton kernel {call.kernel} by a function of its own, and {what} (in "
            f"{call.file}): a TypeError in the first step that verifies drafts, the warm-up included.",
            serving.at("method"),
            "runtime" if call.unreached else "warmup",
            related=(hardware.at("platform"),),
            repair=repair,
        )


def fault(call: StandIn) -> tuple[str, Repair]:
    """What is wrong with the launch of a stand-in, and how it is mended."""
    if call.unreached:
        what = "launches the kernel itself, which needs Triton, since the launcher had taken it before it was replaced"
        return what, Repair("manual", "take another release for speculation on a CPU", ("engine_args",))
    if call.unexpected:
        extra = ", ".join(call.unexpected)
        summary = f"a shim lets the function accept and ignore {extra}, which say nothing to a CPU"
        return f"passes it {extra}, which it does not take", Repair("safe", summary, ("shim",))
    lacking = ", ".join(call.missing)
    return f"does not pass it {lacking}", Repair(
        "manual", "take another release for speculation on a CPU", ("engine_args",)
    )
