"""Whether the engine will take Triton for usable (``HAS_TRITON`` of vllm/triton_utils/importing.py)."""

from __future__ import annotations

from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known

DEVICES = "CUDA_VISIBLE_DEVICES"


def has_triton(hardware: Hardware, serving: Serving, engine: Engine) -> bool:
    """True where Triton is installed and has one active driver, or where the release forgives that it has none."""
    if hardware.triton_installed is False:
        return False
    devices = serving.env.get(DEVICES)
    empty = devices is not None and not devices.strip()
    drivers = known(hardware.triton_drivers, "how many active drivers Triton has on the machine that will serve")
    if empty and drivers != 1:
        known(hardware.triton_installed, "whether Triton is installed on the machine that will serve")
        return known(engine.triton.empty_devices_forgives, f"how {engine} treats an empty {DEVICES}")
    return drivers == 1


def stand_ins(hardware: Hardware, engine: Engine, has_triton: bool | None = None) -> bool:
    """Whether the release puts stand-ins in place of its Triton kernels: on a CPU, unless Triton spares it that.

    Raises NotApplicable where nothing is speculated on that hardware at all.
    """
    if hardware.platform != "cpu" or engine.cpu.refuses is not None:
        raise NotApplicable("no speculation on a CPU")
    if not known(engine.cpu.spared_by_triton, f"when {engine} replaces Triton kernels on a CPU"):
        return True
    return not known(has_triton, "whether Triton is usable on the machine that will serve")
