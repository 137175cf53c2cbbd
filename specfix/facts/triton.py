"""Whether the engine will take Triton for usable (``HAS_TRITON`` of vllm/triton_utils/importing.py)."""

from __future__ import annotations

from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.errors import known

DEVICES = "CUDA_VISIBLE_DEVICES"


def has_triton(hardware: Hardware, serving: Serving, engine: Engine) -> bool:
    """True where Triton is installed and has one active driver, or where the release forgives that it has none."""
    if hardware.triton_installed is False:
        return False
    drivers = known(hardware.triton_drivers, "how many active drivers Triton has on the machine that will serve")
    if drivers == 0 and serving.env.get(DEVICES) == "":
        known(hardware.triton_installed, "whether Triton is installed on the machine that will serve")
        return known(engine.triton.empty_devices_forgives, f"how {engine} treats an empty {DEVICES}")
    return drivers == 1
