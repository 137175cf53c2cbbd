"""What is written beside the output folder: a baseline, and the facts of a machine. Whole or as it was."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from .cases import Place, here
from .points import Points, Strike, ended, run, start

KINDS = ["baseline", "hardware"]
OLDER = 'older, of "platform" or specfix/baseline-v1'  # by which each is known for one of its kind


def arguments(place: Place, kind: str) -> list[str]:
    """The command line that writes such a file into ``work``."""
    if kind == "hardware":
        return ["hardware", "--save", str(place.work / "file")]
    return ["check", *place.arguments()[1:-2], "--write-baseline", str(place.work / "file")]


def struck(place: Place, kind: str, strike: Strike) -> list[tuple[int, str, str]]:
    """The exit status, what was said and what is in the file, for each point at which that happens."""
    found, step = [], 0
    file = place.work / "file"
    while True:
        step += 1
        file.write_text(OLDER)
        done = run(arguments(place, kind), Points(place.work, step, strike), place.beside)
        if len(done.names) >= step or done.status < 0:
            found.append((done.status, done.said, file.read_text()))
            left = place.names() - {"file"}
            assert not left or (done.status < 0 and all(name.startswith(".file.") for name in left))
            for name in left:
                (place.work / name).unlink()
        else:
            assert file.read_text() != OLDER
            return found


@pytest.mark.parametrize("kind", KINDS)
def test_refused_or_ended(tmp_path: Path, kind: str) -> None:
    place = Place(tmp_path)
    here(arguments(place, kind))
    new = (place.work / "file").read_text()

    def refuse(_: str, path: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    for status, said, there in struck(place, kind, refuse):
        assert status == 2 and there == OLDER
        assert said.startswith(f"specfix: error: {place.work}/file cannot be written: the disk is full (")
    for number in (signal.SIGINT, signal.SIGTERM):
        for status, said, there in struck(place, kind, lambda *_, number=number: os.kill(os.getpid(), number)):
            assert (status, said, there) == (128 + number, "", OLDER)
    for status, _, there in struck(place, kind, lambda *_: os.kill(os.getpid(), signal.SIGKILL)):
        assert status == -signal.SIGKILL and there in (OLDER, new)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("there", ["no/such/folder/file", "a-file/file"])
def test_a_place_that_is_none(tmp_path: Path, kind: str, there: str) -> None:
    place = Place(tmp_path)
    (place.work / "a-file").touch()
    given = arguments(place, kind)
    given[-1] = str(place.work / there)
    done = run(given, Points(place.work, 0, print), place.beside)
    assert done.status == 2 and done.said.startswith(f"specfix: error: {place.work / there} cannot be written: ")
    assert done.said.count("\n") == 1


def test_two_baselines_at_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    here(arguments(place, "baseline"))
    whole = (place.work / "file").read_text()
    for _ in range(5):
        folders = [place.beside / name for name in "ab"]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        given = arguments(place, "baseline")
        children = [start(given, Points(place.work, 0, print), folder) for folder in folders]
        both = [ended(child, folder) for child, folder in zip(children, folders, strict=True)]
        assert all(each.status != 2 for each in both), both
        assert (place.work / "file").read_text() == whole and place.names() == {"file"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_another_file_is_left(tmp_path: Path, kind: str) -> None:
    place = Place(tmp_path)
    file = place.work / "file"
    file.write_text('{"model_type": "llama"}')
    assert here(arguments(place, kind)) == 2 and file.read_text() == '{"model_type": "llama"}'
    file.unlink()
    os.mkfifo(file)
    assert here(arguments(place, kind)) == 2 and file.is_fifo()


def test_a_link_is_followed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.work / "file").symlink_to("kept")
    here(arguments(place, "hardware"))
    assert (place.work / "file").is_symlink() and "platform" in (place.work / "kept").read_text()
