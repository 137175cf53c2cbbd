"""The machine that will serve: what it is, not what an engine makes of it."""

from __future__ import annotations

from typing import Literal

from specfix.deployment.location import Location
from specfix.record import record

Platform = Literal["cpu", "cuda", "rocm"]
PACKAGES = ("arctic_inference",)  # optional ones of the engine, without which a method is refused


@record(frozen=True)
class Hardware:
    """Facts of one machine; None means not known, so that rules which need it are skipped.

    ``platform`` is what vLLM would run on; ``compute_capability`` is NVIDIA's (9, 0) for Hopper;
    ``memory_gib`` is of one device; ``triton_installed``: an importable distribution that provides
    ``triton``; ``triton_drivers`` counts Triton's active drivers, as ``triton.backends`` reports them; ``packages``:
    those of ``PACKAGES`` that are installed beside the engine.
    """

    name: str
    platform: Platform
    source: str = "preset"
    device: str | None = None
    devices: int | None = None
    memory_gib: float | None = None
    compute_capability: tuple[int, int] | None = None
    cpu_arch: str | None = None
    cpu_flags: tuple[str, ...] | None = None
    triton_installed: bool | None = None
    triton_drivers: int | None = None
    packages: tuple[str, ...] | None = None

    def at(self, fact: str) -> Location:
        """Location of one of these facts."""
        return Location("hardware", fact)
