"""The machine that this runs on. Starts no more than ``nvidia-smi``, and imports neither torch nor Triton."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from dataclasses import replace
from pathlib import Path

from specfix.deployment.hardware import PACKAGES, Hardware
from specfix.deployment.presets import PRESETS

SMI_SECONDS = 10
TRITON_SECONDS = 60

# counts active drivers just as vLLM does (vllm/triton_utils/importing.py)
COUNT_DRIVERS = """
import sys
sys.path[:] = filter(None, sys.path)  # nothing is imported from where this was started
from triton.backends import backends
print(sum(bool(backend.driver and backend.driver.is_active()) for backend in backends.values()))
"""


def probe(*, ask_triton: bool = False, root: Path = Path("/")) -> Hardware:
    """This machine.

    ``ask_triton`` counts Triton's active drivers in a process of its own, which takes seconds. Without it a
    GPU counts as in the presets, and a CPU host has none where Triton is not here, or has no CPU backend;
    else they are not known. ``root`` is where /proc and /sys lie.
    """
    found = nvidia_smi() or nvidia_driver(root) or amd(root) or Hardware("cpu", "cpu")
    triton = triton_folder()
    installed, drivers = triton is not None, None
    if found.platform != "cpu":
        installed, drivers = True, 1  # the engine may well live in another environment than this one
    elif triton is None or not (triton / "backends" / "cpu").is_dir():
        drivers = 0
    if ask_triton and triton is not None:
        drivers = count_drivers()
    return replace(
        found,
        source="found here",
        cpu_arch=platform.machine() or None,
        cpu_flags=cpu_flags(root),
        triton_installed=installed,
        triton_drivers=drivers,
        packages=packages(),
    )


def packages() -> tuple[str, ...] | None:
    """Optional packages of the engine that are here; None where the engine is not, and lives in another environment."""
    return tuple(filter(folder_of, PACKAGES)) if folder_of("vllm") else None


def nvidia_smi() -> Hardware | None:
    """NVIDIA's devices as its tool lists them; the smallest memory where they differ."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    query = ("--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader,nounits")
    text = output([tool, *query], SMI_SECONDS) or ""
    rows = [row.split(", ") for row in text.splitlines() if row.count(", ") == 2]
    if not rows:
        return None
    name, _, capability = rows[0]
    return Hardware(
        short_name(name),
        "cuda",
        device=name,
        devices=len(rows),
        memory_gib=min((round(float(mib) / 1024, 1) for _, mib, _ in rows if is_decimal(mib)), default=None),
        compute_capability=version(capability),
    )


def nvidia_driver(root: Path) -> Hardware | None:
    """NVIDIA's devices as the kernel driver lists them, where its tool is not there (a slim container)."""
    names = []
    for file in sorted(root.glob("proc/driver/nvidia/gpus/*/information")):
        for line in lines(file):
            if line.startswith("Model:"):
                names.append(line.removeprefix("Model:").strip())
    if not names:
        return None
    preset = PRESETS.get(short_name(names[0]))
    return Hardware(
        short_name(names[0]),
        "cuda",
        device=names[0],
        devices=len(names),
        compute_capability=preset.compute_capability if preset else None,
    )


def amd(root: Path) -> Hardware | None:
    """AMD's compute devices as the kernel driver lists them. A node without SIMD units is a CPU."""
    devices = []
    for node in sorted(root.glob("sys/class/kfd/kfd/topology/nodes/*")):
        facts = numbers(node / "properties")
        if facts.get("simd_count"):
            banks = [numbers(bank).get("size_in_bytes", 0) for bank in node.glob("mem_banks/*/properties")]
            devices.append((facts.get("gfx_target_version", 0), sum(banks)))
    if not devices:
        return None
    target, memory = devices[0]
    architecture = f"gfx{target // 10000}{target // 100 % 100:x}{target % 100:x}"  # 90402: gfx942
    return Hardware(
        architecture,
        "rocm",
        device=f"AMD {architecture}",
        devices=len(devices),
        memory_gib=round(memory / 2**30, 1) or None,
    )


def cpu_flags(root: Path) -> tuple[str, ...] | None:
    """Instruction-set flags of the first CPU, where the system lists them."""
    for line in lines(root / "proc/cpuinfo"):
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return tuple(value.split())
    return None


def triton_folder() -> Path | None:
    return folder_of("triton")


def folder_of(package: str) -> Path | None:
    """Where a package of this environment lies; it is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec and spec.origin else None  # a bare folder has no origin


def count_drivers() -> int | None:
    """Triton's active drivers; None where it could not say."""
    import sys

    text = (output([sys.executable, "-c", COUNT_DRIVERS], TRITON_SECONDS) or "").strip()
    return int(text) if text.isdigit() else None


def output(command: list[str], seconds: float) -> str | None:
    """What a command prints; None where it fails, or takes longer than that."""
    import subprocess

    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout


def lines(path: Path) -> list[str]:
    """Lines of a small system file; none where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def numbers(path: Path) -> dict[str, int]:
    """``name number`` lines of a system file."""
    pairs = (line.split() for line in lines(path))
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def short_name(device: str) -> str:
    """The preset that a device's full name contains, the longest one; else the name itself."""
    plain = device.lower().replace(" ", "")
    return max((name for name in PRESETS if name in plain), key=len, default=device)


def is_decimal(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def version(text: str) -> tuple[int, int] | None:
    """(9, 0) for "9.0"."""
    major, _, minor = text.strip().partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None
