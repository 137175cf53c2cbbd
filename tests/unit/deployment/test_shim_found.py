"""A shim on PYTHONPATH: believed only where the engine would run it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specfix.checker.run import covers
from specfix.deployment.shim import find_shim
from specfix.errors import CannotCheck
from specfix.testing import write_shim


def edit(folder: Path) -> None:
    manifest = folder / "specfix_shim" / "manifest.json"
    manifest.write_text(manifest.read_text().replace("8192", "16384"))


def without_entry_point(folder: Path) -> None:
    (folder / "specfix_shim-1.dist-info" / "entry_points.txt").unlink()


def without_digest(folder: Path) -> None:
    (folder / "specfix_shim" / "manifest.sha256").unlink()


def without_manifest(folder: Path) -> None:
    (folder / "specfix_shim" / "manifest.json").unlink()


def of_another_version(folder: Path) -> None:
    core = folder / "specfix_shim" / "core.py"
    core.write_text(core.read_text() + "\n")


PATCHES = {"draft_positions": {"draft": "/models/draft", "max_position_embeddings": 8192}}


def test_a_whole_shim_is_found(tmp_path: Path) -> None:
    found = find_shim({"PYTHONPATH": f"/nowhere:{write_shim(tmp_path, PATCHES)}"})
    assert found is not None and not isinstance(found, Exception)
    assert found.patches == PATCHES


@pytest.mark.parametrize("spoil", [edit, without_entry_point, without_digest, without_manifest, of_another_version])
def test_one_that_the_engine_will_not_run_is_refused(spoil: Callable[[Path], None], tmp_path: Path) -> None:
    folder = write_shim(tmp_path, PATCHES)
    spoil(folder)
    behind = write_shim(tmp_path / "behind", PATCHES)
    with pytest.raises(CannotCheck, match="will not run the shim"):
        find_shim({"PYTHONPATH": f"{folder}:{behind}"})


def test_a_patch_covers_what_it_does_at_least(tmp_path: Path) -> None:
    (tmp_path / "draft").mkdir()
    (tmp_path / "link").symlink_to("draft")
    has = {"draft": str(tmp_path / "draft"), "max_position_embeddings": 8192}
    assert covers(has, {"draft": str(tmp_path / "link"), "max_position_embeddings": 4096})
    assert not covers(has, {"draft": str(tmp_path / "draft"), "max_position_embeddings": 8193})
    assert not covers(has, {"draft": str(tmp_path / "other"), "max_position_embeddings": 4096})
    assert covers({}, {})
