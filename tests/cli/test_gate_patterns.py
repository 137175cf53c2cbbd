"""Files that are given by a pattern."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import Done, Run
from .gates import SHUT, WHERE, WHERE_26, launch, noted, without_rights


def test_files_may_be_patterns_with_blanks(specfix: Run, project: Path) -> None:
    (project / "deploy" / "eu west").mkdir()
    for name in ("my launch.yaml", "eu west/a.yaml", "eu west/other.txt"):
        (project / "deploy" / name).write_text(launch(8192))
    where = ("--engine", "vllm==0.26.0", *WHERE)
    done = specfix("gate", "**/*.yaml", *where)
    assert done.returncode == 1
    assert [line.split("  ")[1] for line in done.stdout.splitlines()[-2:]] == [
        "eu west/a.yaml: 1 error",
        "my launch.yaml: 1 error",
    ]
    done = specfix("gate", "none/*.yaml", "my launch.yaml", *where)
    assert done.returncode == 2 and "unreadable  none/*.yaml: no file matches" in done.stdout
    (project / "deploy" / "my [1].yaml").write_text(launch(1024))  # a name wins over a pattern
    assert specfix("gate", "my [1].yaml", *where).stdout.endswith("pass  my [1].yaml: nothing found\n")


@pytest.mark.parametrize(("given", "found"), [("home/*/run.yaml", 1), ("home/*/in/*.yaml", 1), ("home/*/*.yaml", 0)])
def test_a_folder_is_listed_only_where_names_are_compared(
    specfix: Run, open_folder: Path, given: str, found: int
) -> None:
    """What is named may be opened in a folder that cannot be listed."""
    for name in ("a", "b", "c"):
        (open_folder / "home" / name / "in").mkdir(parents=True)
        for file in ("run.yaml", "in/run.yaml"):
            (open_folder / "home" / name / file).write_text(launch(8192 if name == "a" else 1024))
    (open_folder / "home/a").chmod(0o711)
    (open_folder / "home/b").chmod(0o700)
    with without_rights():
        done = specfix("gate", given, *WHERE_26)
    assert done.returncode == found
    assert noted(done) == [f"{SHUT} (home/{name})" for name in ("b" if found else "ab")]


def test_a_pattern_of_which_nothing_can_be_read_is_no_pass(specfix: Run, open_folder: Path) -> None:
    (open_folder / "home/a").mkdir(parents=True)
    (open_folder / "home/a/run.yaml").write_text(launch(8192))
    (open_folder / "home/a").chmod(0o700)
    with without_rights():
        done = specfix("gate", "home/*/run.yaml", *WHERE_26)
    assert done.returncode == 2 and noted(done) == [f"{SHUT} (home/a)"]
    assert "home/*/run.yaml: no file matches" in done.stdout


def test_a_link_on_the_way_of_a_pattern_that_may_not_be_followed(specfix: Run, open_folder: Path) -> None:
    (open_folder / "shut/b").mkdir(parents=True)
    (open_folder / "home/a").mkdir(parents=True)
    (open_folder / "home/a/run.yaml").write_text(launch(1024))
    (open_folder / "home/b").symlink_to("../shut/b")
    (open_folder / "home/c").symlink_to("nowhere")
    (open_folder / "shut").chmod(0o700)
    with without_rights():
        done = specfix("gate", "home/*/run.yaml", *WHERE_26)
    assert done.returncode == 0
    assert noted(done) == ["is a link that cannot be followed: Permission denied (home/b)"]


@pytest.fixture
def circles(project: Path) -> Path:
    """A folder with links that lead round, one elsewhere, and files that are links."""
    deploy = project / "deploy"
    for folder in (deploy / "a", deploy / "b", project / "other"):
        folder.mkdir()
    for link in ("a/loop", "a/again", "b/loop"):
        (deploy / link).symlink_to("..")
    (deploy / "b/there").symlink_to("../../other")
    (project / "other/run.yaml").write_text(launch(1024))
    (deploy / "a/run.yaml").write_text(launch(1024))
    (deploy / "b/link.yaml").symlink_to("../../other/run.yaml")
    return deploy


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("**/*.yaml", ["a/run.yaml", "b/link.yaml"]),
        ("**", ["a/run.yaml", "b/link.yaml"]),
        ("**/**/", ["a/run.yaml", "b/link.yaml"]),
        ("b/**/run.yaml", []),
    ],
)
def test_links_to_folders_are_not_followed_at_any_depth(
    specfix: Run, circles: Path, given: str, found: list[str]
) -> None:
    """Each of those in a circle doubles what is below."""
    done = specfix("gate", given, *WHERE_26)
    assert names(done) == (found or [given]) and done.returncode == (0 if found else 2)
    elsewhere = "is a link to a folder elsewhere, and was not followed: name that too"
    told = [f"{elsewhere} (b/{link})" for link in (["there"] if found else ["loop", "there"])]
    assert noted(done) == told


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("a/loop/*/*.yaml", ["a/loop/a/run.yaml", "a/loop/b/link.yaml"]),
        ("b/loop/**/run.yaml", ["b/loop/a/run.yaml"]),
        ("**/there/*.yaml", ["b/there/run.yaml"]),
        ("**/th?re/**", ["b/there/run.yaml"]),
        ("**/*/run.yaml", ["a/run.yaml", "b/there/run.yaml"]),
        ("**/again/**/run.yaml", ["a/again/a/run.yaml"]),
    ],
)
def test_a_link_that_a_pattern_names_is_followed(specfix: Run, circles: Path, given: str, found: list[str]) -> None:
    done = specfix("gate", given, *WHERE_26)
    assert names(done) == found and done.returncode == 0
    assert ("(b/there)" in " ".join(noted(done))) == (given.startswith("**/again"))


@pytest.mark.parametrize("given", [".", "**/*.yaml", "**/"])
def test_folders_of_great_depth(specfix: Run, project: Path, given: str) -> None:
    deepest = project / "deploy" / "/".join("d" * 1100)
    for folder in reversed([deepest, *deepest.parents][:1100]):
        folder.mkdir()
    (deepest / "a.yaml").write_text(launch(8192))
    (project / "deploy/README").write_text("stays\n")
    try:
        assert specfix("gate", given, *WHERE_26).returncode == 1
    finally:  # what is to take it away is not as patient
        (deepest / "a.yaml").unlink()
        os.removedirs(deepest)


def names(done: Done) -> list[str]:
    """The launches of a run, in their order."""
    return [line.removeprefix("== ") for line in done.stdout.splitlines() if line.startswith("== ")]
