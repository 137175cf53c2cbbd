"""Two runs into one folder: one result or the other, never a mix, and nothing beside it."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from .cases import Known, Place, here
from .points import Ended, Points, ended, start, tree


def dawdle(*_: str) -> None:
    """So that the two meet at ever other points."""
    time.sleep(random.random() / 300)


def together(place: Place, *runs: list[str]) -> list[Ended]:
    """Run them at the same time."""
    folders = [place.beside / str(number) for number in range(len(runs))]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    children = [
        start(arguments, Points(place.work, 0, dawdle, lasting=True), folder)
        for arguments, folder in zip(runs, folders, strict=True)
    ]
    return [ended(child, folder) for child, folder in zip(children, folders, strict=True)]


@pytest.mark.parametrize("rounds", [2, pytest.param(25, marks=pytest.mark.faults)])
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("other", [8192, 2048])
@pytest.mark.parametrize("locks", [True, False])
def test_into_one_folder(
    tmp_path: Path, rounds: int, older: bool, other: int, locks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Known.make(tmp_path, "folder", older)
    place = known.place
    runs = [known.arguments, place.arguments(other)]
    known.reset()
    assert here(runs[1]) == 0
    results = [known.new, tree(place.out)]
    if not locks:
        monkeypatch.setattr(fcntl, "flock", no_locks)
    for _ in range(rounds):
        known.reset()
        both = together(place, *runs)
        there = tree(place.out)
        assert there in results
        assert place.names() == {"out"}, both
        for each in both:
            assert each.status == 0 or (not locks and each.status == 2 and refused(each.said, place)), each.said
        assert any(each.status == 0 for each in both)
        wrote = [" is written" in each.said for each in both]
        if not all(wrote):
            assert there == results[wrote.index(True)]
        if locks:  # of two that ask for the same, one finds it there
            assert all(wrote) == (other != 8192)


def no_locks(*_: Any) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def refused(said: str, place: Place) -> bool:
    """Whether it says that another is at work."""
    return said.startswith("specfix: error: ") and "another run is writing" in said and said.count("\n") == 1


def test_what_a_killed_one_left_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    arguments = place.arguments()
    monkeypatch.setattr(fcntl, "flock", no_locks)
    (place.work / ".out.specfix-new").mkdir()
    ended = place.forked(arguments)
    assert ended.status == 2 and refused(ended.said, place)
    assert place.names() == {".out.specfix-new"}
    (place.work / ".out.specfix-new").rmdir()
    assert place.forked(arguments).status == 0
