"""What the engine asks of its platform and its device, by the words of the conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from specfix.engines.compiled import Condition

PLATFORMS: Final = ("cuda", "rocm", "cpu", "xpu", "tpu")
WORDS: Final[Mapping[str, str]] = {
    "current_platform.get_device_total_memory()": "device_memory",
    "current_platform.get_device_name().lower()": "device_name",
    "current_platform.get_device_name()": "chip_name",
    "current_platform.get_device_capability()": "capability",
    "device_capability": "capability",
}


def asked(method: str, arguments: Sequence[Condition]) -> Condition | None:
    """What a method of a platform (platforms/interface.py) tells; None for any other method."""
    number = arguments[0][1] if arguments and arguments[0][0] == "const" else None
    version = number if isinstance(number, list) else None
    if isinstance(number, int) and number > 9:  # 90 is 9.0
        version = [number // 10, number % 10]
    match method:
        case "is_device_capability_family" if isinstance(number, int):
            return ["==", ["name", "capability.major"], ["const", number // 10]]
        case "is_device_capability" if version:
            return ["==", ["name", "capability"], ["const", version]]
        case "has_device_capability" if version:
            return [">=", ["name", "capability"], ["const", version]]
        case "get_cpu_architecture":
            return ["name", "cpu_architecture"]
        case "is_cuda_alike":
            return ["in", ["name", "platform"], ["const", ["cuda", "rocm"]]]
        case _ if method.startswith("is_") and method[3:] in PLATFORMS and not arguments:
            return ["==", ["name", "platform"], ["const", method[3:]]]
    return None
