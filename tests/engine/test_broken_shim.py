"""An engine whose shim is broken, in whatever way, does what it does without one."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .chosen import releases
from .engines import engine
from .pairs import Folders
from .test_shim import GREEDY, job, pairs, run, shim, tell, with_path

__all__ = ["pairs", "shim"]  # fixtures

pytestmark = pytest.mark.engine

# What a patch defines -> what it does instead.
RAISES = """
class Told(BaseException):
    pass
def {name}(*_, **__):
    raise Told("{name}")
"""
HOOKS = {
    "cpu_aux_setup": ["_set_layers"],
    "slot_block_size": ["_after_tables", "_after_groups"],
    "draft_positions": ["is_draft", "enlarge"],
}
PATCHES = (*HOOKS, "cpu_sampling", "cpu_stand_ins", "sorted_draft_layers")


def edit(file: Path) -> None:
    file.write_text(file.read_text().replace("1024", "512"))


def make_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


SPOILT: dict[str, Callable[[Path], None]] = {
    "manifest edited": lambda code: edit(code / "manifest.json"),
    "manifest missing": lambda code: (code / "manifest.json").unlink(),
    "manifest unreadable": lambda code: make_folder(code / "manifest.json"),
    "manifest never ends": lambda code: make_fifo(code / "manifest.sha256"),
    "plans raise": lambda code: define(code, {patch: ["plan"] for patch in PATCHES}),
    "hooks raise": lambda code: define(code, HOOKS),
    "not whole": lambda code: (code / "core.py").unlink(),
}


def define(code: Path, functions: dict[str, list[str]]) -> None:
    """Have these functions raise, and the manifest belong to that."""
    for patch, names in functions.items():
        with (code / f"{patch}.py").open("a") as file:
            file.write("".join(RAISES.format(name=name) for name in names))
    files = [*sorted(code.glob("*.py")), code / "manifest.json"]
    digests = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (code / "manifest.sha256").write_text("".join(digests))


@pytest.mark.parametrize("version", releases(["0.21.0", "0.32.0"], "0.32.0"))
def test_a_broken_shim_changes_nothing(version: str, pairs: dict[int, Folders], shim: Path, tmp_path: Path) -> None:
    jobs: list[dict[str, Any]] = [job("none", pairs[64], GREEDY, lengths=[20, 200])]
    for number, (name, spoil) in enumerate(SPOILT.items()):
        folder = tmp_path / str(number)
        shutil.copytree(shim, folder)
        spoil(folder / "specfix_shim")
        jobs.append(job(name, pairs[64], GREEDY, lengths=[20, 200], path=[str(folder)]))
    jobs.append(job("whole", pairs[64], GREEDY, lengths=[20, 200], path=[str(shim)]))
    release = engine(version)
    none, *broken, whole = run(release, with_path(release), tmp_path / "runs", jobs)
    assert "specfix shim" not in none["log"]

    def told(result: dict[str, Any]) -> dict[str, Any]:
        return {key: result.get(key) for key in ("outcome", "lengths", "error", "message", "moment")}

    for result in broken:
        assert told(result) == told(none), tell(result)
        lines = [line for line in result["log"].splitlines() if "specfix shim: " in line]
        if result["name"] == "plans raise":
            for patch in PATCHES:
                assert any(f"{patch}: did nothing: Told: plan" in line for line in lines), tell(result)
        assert lines or "specfix_shim" in result["log"], tell(result)
    assert told(whole) != told(none), "the shim does something where it is whole"
