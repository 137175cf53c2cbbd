"""HWR002: stand-ins for Triton kernels that do not take their caller's arguments."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.engines.facts.hardware import StandIn


@rule("HWR002", "cpu-stand-in-kernels", severity="error", evidence=["vllm/utils/cpu_triton_utils.py"])
def cpu_stand_in_kernels(serving: Serving, hardware: Hardware, engine: Engine, stand_ins: bool) -> Iterator[Finding]:
    """On a CPU this release launches kernels in a way that fails."""
    faulty = engine.cpu.stand_ins if stand_ins else ()
    if not faulty:
        return
    told = "; ".join(f"{call.kernel} {fault(call)} ({call.file})" for call in faulty)
    yield Finding(
        f"On a CPU {engine} has functions of its own in place of Triton kernels, and does not launch them right: "
        f"{told}. The first step that verifies drafts fails with a TypeError, and with it the warm-up.",
        serving.at("method"),
        # what is never reached is not compiled in the warm-up either
        "runtime" if all(call.unreached for call in faulty) else "warmup",
        related=(hardware.at("platform"),),
        repair=repair(faulty),
    )


def fault(call: StandIn) -> str:
    """What is wrong with the launch of one stand-in."""
    if call.unreached:
        return "is launched itself, since its launcher took it before it was replaced"
    if call.unexpected:
        return f"is passed {', '.join(call.unexpected)}, which its stand-in does not take"
    return f"is not passed {', '.join(call.missing)}"


def repair(faulty: tuple[StandIn, ...]) -> Repair:
    """A shim, where accepting the arguments is all that is needed."""
    if all(call.unexpected for call in faulty):
        summary = "a shim lets the stand-ins take the arguments, which say nothing to a CPU"
        return Repair("safe", summary, ("shim",), (("shim", "cpu_stand_ins", {}),))
    return Repair("manual", "take another release for speculation on a CPU", ("engine_args",))
