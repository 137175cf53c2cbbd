from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specfix.deployment import Location, probe
from specfix.deployment.hardware import Hardware
from specfix.deployment.machines import find_hardware, load_hardware_file, save
from specfix.deployment.presets import PRESETS
from specfix.errors import CannotCheck


def test_presets() -> None:
    cpu, h200 = PRESETS["cpu"], PRESETS["h200"]
    assert find_hardware("cpu") is cpu
    assert find_hardware("H200") is h200
    assert find_hardware("unknown") is None
    assert (cpu.platform, cpu.triton_installed, cpu.triton_drivers) == ("cpu", False, 0)
    assert (h200.platform, h200.memory_gib, h200.compute_capability) == ("cuda", 141, (9, 0))
    assert PRESETS["mi300x"].platform == "rocm"
    for name, hardware in PRESETS.items():
        assert name == name.lower() == hardware.name
        assert (hardware.compute_capability is not None) == (hardware.platform == "cuda")
    assert cpu.at("triton_drivers") == Location("hardware", "triton_drivers")


def test_unknown_name() -> None:
    with pytest.raises(CannotCheck, match=r'no hardware is called "h2000": did you mean h200\? known are cpu, '):
        find_hardware("h2000")
    with pytest.raises(CannotCheck, match=r'no hardware is called "zzz": known are'):
        find_hardware("zzz")


def test_save_and_load(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    machine = replace(PRESETS["h200"], devices=8, cpu_arch="x86_64", cpu_flags=("avx2", "avx512f"))
    save(machine, path)
    assert find_hardware(str(path)) == replace(machine, source=str(path))
    save(PRESETS["cpu"], path)
    assert load_hardware_file(path).platform == "cpu"
    assert [file.name for file in tmp_path.iterdir()] == ["machine.json"]
    with pytest.raises(CannotCheck, match="cannot be written"):
        save(machine, tmp_path / "absent" / "machine.json")
    with pytest.raises(CannotCheck, match="does not exist"):
        find_hardware(str(tmp_path / "absent.json"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "x"}, "/platform is missing"),
        ({"name": "x", "platform": "tpu"}, "/platform is \"tpu\": Input should be 'cpu', 'cuda' or 'rocm'"),
        ({"name": 1, "platform": "cpu"}, "/name is 1: Input should be a valid string"),
        (
            {"name": "x", "platform": "cpu", "devices": "8"},
            '/devices is "8": Input should be a valid integer',
        ),
        ({"name": "x", "platform": "cpu", "devices": -1}, "/devices is -1, which is no number from 0 to 2^40"),
        ({"name": "x", "platform": "cpu", "memory_gib": float("inf")}, "/memory_gib is Infinity, which is no number"),
        ({"name": "x", "platform": "cpu", "memory_gib": float("nan")}, "/memory_gib is "),
        ({"name": " ", "platform": "cpu"}, "/name is empty"),
        (
            {"name": "x", "platform": "cpu", "triton": True},
            "/triton is no fact of hardware; known are name, ",
        ),
        ({"name": "x", "platform": "cuda", "compute_capability": [9]}, "/compute_capability"),
        ({"name": "x", "platform": "cpu", "triton_installed": "yes"}, '/triton_installed is "yes"'),
        ([], "holds [] where a JSON object is expected"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, values: Any, message: str) -> None:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(values))
    with pytest.raises(CannotCheck) as refused:
        load_hardware_file(path)
    assert message in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_in_which_a_fact_stands_twice(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text('{"name": "x", "platform": "cpu", "devices": 1, "devices": 1}')
    assert load_hardware_file(path).devices == 1
    path.write_text('{"name": "x", "platform": "cpu", "devices": 1, "devices": 8}')
    with pytest.raises(CannotCheck, match=r'machine\.json has "devices" twice: 1 and 8'):
        load_hardware_file(path)


# the machine itself: every source of facts is a file below `root`, or the output of one command


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without nvidia-smi and without Triton."""
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(probe, "triton_folder", lambda: None)
    return monkeypatch


def test_this_machine() -> None:
    here = find_hardware(None)
    assert here is not None
    assert here.source == "found here"
    assert here.platform in ("cpu", "cuda", "rocm")


def test_cpu(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu avx2\n\nflags : other\n")
    here = probe.probe(root=tmp_path)
    assert (here.name, here.platform, here.cpu_flags) == ("cpu", "cpu", ("fpu", "avx2"))
    assert (here.triton_installed, here.triton_drivers) == (False, 0)
    (tmp_path / "proc" / "cpuinfo").write_text("Features\t: fp asimd\n")
    assert probe.probe(root=tmp_path).cpu_flags == ("fp", "asimd")
    assert probe.probe(root=tmp_path / "absent").cpu_flags is None


def smi(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr(probe, "output", lambda command, seconds: text)


def test_nvidia(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    smi(bare, "NVIDIA H200, 143771, 9.0\nNVIDIA H200, 143771, 9.0\n")
    here = probe.probe(root=tmp_path)
    assert (here.name, here.device, here.devices) == ("h200", "NVIDIA H200", 2)
    assert (here.platform, here.memory_gib, here.compute_capability) == ("cuda", 140.4, (9, 0))
    assert (here.triton_installed, here.triton_drivers) == (True, 1)
    smi(bare, "NVIDIA L40S, [N/A], 8.9\n")
    here = probe.probe(root=tmp_path)
    assert (here.name, here.memory_gib) == ("l40s", None)
    for nothing in (None, "", "No devices were found\n"):
        smi(bare, nothing)
        assert probe.probe(root=tmp_path).platform == "cpu"


def test_nvidia_without_its_tool(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for index, model in enumerate(("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB")):
        information = tmp_path / f"proc/driver/nvidia/gpus/{index}/information"
        information.parent.mkdir(parents=True)
        information.write_text(f"Model: \t\t {model}\nIRQ: 1\n")
    here = probe.probe(root=tmp_path)
    assert (here.name, here.devices, here.compute_capability) == ("a100", 2, (8, 0))


def test_amd(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nodes = tmp_path / "sys/class/kfd/kfd/topology/nodes"
    for index, (simds, target) in enumerate(((0, 0), (1216, 90402), (1216, 90402))):
        bank = nodes / str(index) / "mem_banks/0"
        bank.mkdir(parents=True)
        (bank / "properties").write_text(f"heap_type 1\nsize_in_bytes {192 * 2**30}\n")
        (nodes / str(index) / "properties").write_text(f"simd_count {simds}\ngfx_target_version {target}\n")
    here = probe.probe(root=tmp_path)
    assert (here.name, here.platform, here.devices, here.memory_gib) == ("gfx942", "rocm", 2, 192.0)


def test_packages_beside_the_engine(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setattr(probe, "folder_of", {}.get)
    assert probe.probe(root=tmp_path).packages is None  # the engine lives elsewhere
    bare.setattr(probe, "folder_of", {"vllm": tmp_path}.get)
    assert probe.probe(root=tmp_path).packages == ()
    bare.setattr(probe, "folder_of", {"vllm": tmp_path, "arctic_inference": tmp_path}.get)
    assert probe.probe(root=tmp_path).packages == ("arctic_inference",)


def test_triton_is_found_without_being_imported(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "site" / "triton"
    (package / "backends" / "nvidia").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    bare.undo()
    bare.setattr("shutil.which", lambda name: None)
    bare.syspath_prepend(str(tmp_path / "site"))
    here = probe.probe(root=tmp_path)
    assert (here.triton_installed, here.triton_drivers) == (True, 0)
    (package / "backends" / "cpu").mkdir()
    here = probe.probe(root=tmp_path)
    assert (here.triton_installed, here.triton_drivers) == (True, None)
    assert probe.probe(root=tmp_path, ask_triton=True).triton_drivers is None  # importing it fails


def test_drivers_are_counted_in_a_process_of_its_own(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setattr(probe, "triton_folder", lambda: tmp_path)
    bare.setattr(probe, "COUNT_DRIVERS", "print(2)")
    assert probe.probe(root=tmp_path, ask_triton=True).triton_drivers == 2
    bare.setattr(probe, "COUNT_DRIVERS", "import time; time.sleep(60)")
    bare.setattr(probe, "TRITON_SECONDS", 0.2)
    assert probe.probe(root=tmp_path, ask_triton=True).triton_drivers is None


def test_output_is_none_where_a_command_fails() -> None:
    assert probe.output([sys.executable, "-c", "print(1)"], 20) == "1\n"
    assert probe.output([sys.executable, "-c", "raise SystemExit(1)"], 20) is None
    assert probe.output(["/no/such/tool"], 20) is None


def test_the_snippet_counts_as_vllm_does(tmp_path: Path) -> None:
    package = tmp_path / "triton"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "backends.py").write_text(
        "from types import SimpleNamespace as N\n"
        "backends = {'a': N(driver=N(is_active=lambda: True)), 'b': N(driver=None),\n"
        "            'c': N(driver=N(is_active=lambda: False))}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe.COUNT_DRIVERS],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1\n"


def test_hardware_is_plain() -> None:
    assert Hardware("x", "cpu") == Hardware("x", "cpu", "preset")
