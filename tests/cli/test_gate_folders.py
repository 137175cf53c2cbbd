"""Files that are found in a folder, and what is met there: links, and folders that are shut."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import Run
from .gates import SHUT, WHERE, WHERE_26, launch, noted, without_rights


@pytest.mark.parametrize("given", [".", "deploy", "**/*.yaml", "deploy/*/*.yaml", "dep*"])
@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_a_folder_that_is_met_and_may_not_be_looked_into(
    specfix: Run, open_folder: Path, given: str, mode: int
) -> None:
    for name in ("deploy/open", "deploy/shut", "deploy/.cache/shut", "deploy/__pycache__", "venv/a"):
        (open_folder / name).mkdir(parents=True)
    (open_folder / "deploy/open/a.yaml").write_text(launch(1024))
    for name in ("deploy/shut/b.yaml", "deploy/.cache/shut/b.yaml"):
        (open_folder / name).write_text(launch(8192))
    assert specfix("gate", given, *WHERE_26).returncode == 1
    for name in ("deploy/.cache/shut", "deploy/__pycache__", "venv/a", "deploy/shut"):
        (open_folder / name).chmod(mode)
    with without_rights():
        done = specfix("gate", given, *WHERE_26)
    assert done.returncode == 0 and done.stdout.endswith("pass  deploy/open/a.yaml: nothing found\n")
    assert noted(done)[-1] == f"{SHUT} (deploy/shut)"
    assert all("(deploy/shut" in each for each in noted(done))  # of what tools keep for themselves nothing is said


@pytest.mark.parametrize("given", ["deploy", "deploy/", "deploy/*.yaml", "deploy/*/*.yaml", "deploy/**", ".hidden"])
@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_a_folder_that_is_named_and_may_not_be_looked_into_is_no_pass(
    specfix: Run, open_folder: Path, given: str, mode: int
) -> None:
    for name in ("deploy", ".hidden"):
        (open_folder / name).mkdir()
        (open_folder / name / "a.yaml").write_text(launch(8192))
        (open_folder / name).chmod(mode)
    with without_rights():
        done = specfix("gate", given, *WHERE_26)
    assert done.returncode == 2 and done.stdout.count("cannot be looked into") == done.stdout.count("== ") * 2 == 2
    assert f"{Path(given).parts[0]}: {SHUT}" in done.stdout


@pytest.mark.parametrize("given", [".", "*"])
def test_links_that_may_not_be_followed(specfix: Run, open_folder: Path, given: str) -> None:
    """To a folder, or to a file that may be a launch; one that leads nowhere is no folder."""
    (open_folder / "other/shut/deploy").mkdir(parents=True)
    deploy = open_folder / "deploy"
    deploy.mkdir()
    (deploy / "a.yaml").write_text(launch(1024))
    (deploy / "d1").symlink_to("../other/shut/deploy")
    (deploy / "b.yaml").symlink_to("../other/shut/b.yaml")
    (deploy / "current").symlink_to("nowhere")
    (open_folder / "other/shut").chmod(0o700)
    os.chdir(deploy)
    (deploy / "current").unlink() if given == "*" else None  # a pattern names files of any kind
    with without_rights():
        done = specfix("gate", given, *WHERE_26)
    assert done.returncode == 0
    link = "is a link that cannot be followed" if given == "." else "cannot be read"
    assert sorted(noted(done)) == ["cannot be read: Permission denied (b.yaml)", f"{link}: Permission denied (d1)"]


def test_links_within_a_folder(specfix: Run, project: Path) -> None:
    where = ("--engine", "vllm==0.26.0", *WHERE)
    (project / "other").mkdir()
    (project / "other/b.yaml").write_text(launch(8192))
    deploy = project / "deploy"
    (deploy / "sub").mkdir()
    (deploy / "sub/a.yaml").write_text(launch(1024))
    (deploy / "sub/up").symlink_to("..")  # in a circle
    (deploy / "again").symlink_to("sub")
    (deploy / ".#a.yaml").symlink_to("someone@here.123")  # an editor's lock
    done = specfix("gate", ".", *where)
    assert done.returncode == 0 and "note:" not in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("== ")] == ["== sub/a.yaml"]
    (deploy / "there").symlink_to("../other")
    done = specfix("gate", ".", *where)
    assert "note: is a link to a folder elsewhere, and was not followed: name that too (there)" in done.stdout
    assert specfix("gate", ".", "there", *where).returncode == 1
    for name in ("sub/c.yaml", ".cache/d.sh"):  # of what tools keep for themselves nothing is said
        (deploy / name).parent.mkdir(exist_ok=True)
        (deploy / name).symlink_to("nowhere")
    for given in (".", "sub/*.yaml"):
        done = specfix("gate", given, *where)
        assert done.returncode == 0 and "cannot be read: No such file or directory (sub/c.yaml)" in noted(done)
        assert ".cache" not in done.stdout
    assert specfix("gate", "sub/c.yaml", *where).returncode == 2


def test_only_a_link_is_an_editors_lock(specfix: Run, project: Path) -> None:
    (project / "deploy" / ".#a.yaml").write_text(launch(8192))
    assert specfix("gate", ".", *WHERE_26).returncode == 1
