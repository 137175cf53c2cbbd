"""Hardware by name: what its maker publishes of one device.

vLLM's GPU wheels require Triton, and a GPU gives it one active driver. ``cpu`` is a host without a GPU and
without Triton; ``specfix hardware --save`` records a host as it is.
"""

from __future__ import annotations

from specfix.deployment.hardware import Hardware


def nvidia(name: str, device: str, memory_gib: float, capability: tuple[int, int]) -> Hardware:
    return Hardware(
        name,
        "cuda",
        device=f"NVIDIA {device}",
        memory_gib=memory_gib,
        compute_capability=capability,
        triton_installed=True,
        triton_drivers=1,
    )


def amd(name: str, device: str, memory_gib: float) -> Hardware:
    return Hardware(
        name,
        "rocm",
        device=f"AMD Instinct {device}",
        memory_gib=memory_gib,
        triton_installed=True,
        triton_drivers=1,
    )


PRESETS: dict[str, Hardware] = {
    hardware.name: hardware
    for hardware in (
        Hardware("cpu", "cpu", triton_installed=False, triton_drivers=0),
        nvidia("v100", "V100 32GB", 32, (7, 0)),
        nvidia("t4", "T4", 16, (7, 5)),
        nvidia("a100", "A100 80GB", 80, (8, 0)),
        nvidia("a100-40gb", "A100 40GB", 40, (8, 0)),
        nvidia("a10", "A10", 24, (8, 6)),
        nvidia("a10g", "A10G", 24, (8, 6)),
        nvidia("a40", "A40", 48, (8, 6)),
        nvidia("rtx3090", "GeForce RTX 3090", 24, (8, 6)),
        nvidia("l4", "L4", 24, (8, 9)),
        nvidia("l40s", "L40S", 48, (8, 9)),
        nvidia("rtx4090", "GeForce RTX 4090", 24, (8, 9)),
        nvidia("h100", "H100 80GB", 80, (9, 0)),
        nvidia("h20", "H20", 96, (9, 0)),
        nvidia("h200", "H200", 141, (9, 0)),
        nvidia("b200", "B200", 180, (10, 0)),
        nvidia("b300", "B300", 288, (10, 3)),
        nvidia("rtx5090", "GeForce RTX 5090", 32, (12, 0)),
        nvidia("rtxpro6000", "RTX PRO 6000 Blackwell", 96, (12, 0)),
        nvidia("dgx-spark", "GB10", 128, (12, 1)),
        amd("mi250x", "MI250X", 64),  # of one of its two dies, each of which is a device
        amd("mi300x", "MI300X", 192),
        amd("mi325x", "MI325X", 256),
        amd("mi355x", "MI355X", 288),
    )
}
