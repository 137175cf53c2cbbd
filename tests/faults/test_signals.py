"""Ctrl-C and its like: no half of a folder, no traceback, and the exit status that shells expect."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .cases import Known

INTERRUPTS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize(
    ("number", "older", "each"),
    [
        (signal.SIGINT, True, 3),
        *(
            pytest.param(number, older, 1, marks=pytest.mark.faults)
            for number, older in itertools.product(INTERRUPTS, [False, True])
        ),
    ],
)
def test_at_each_point(
    tmp_path: Path, number: signal.Signals, older: bool, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or at every third."""
    known = Known.make(tmp_path, "folder", older)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    step, ended = 0, None
    while ended is None or ended.status:
        step += each
        known.reset()
        ended = known.place.forked(known.arguments, step, lambda *_: os.kill(os.getpid(), number))
        new = known.hold()
        assert known.place.names() == ({"out"} if older or new else set())
        if ended.status:
            assert (ended.status, ended.said) == (128 + number, "")
            assert new is (True if new else False if older else None)
    assert new and step > 40


@pytest.mark.parametrize(
    ("number", "older", "each"),
    [
        (signal.SIGINT, True, 19),
        *(
            pytest.param(number, older, 1, marks=pytest.mark.faults)
            for number, older in itertools.product(INTERRUPTS, [False, True])
        ),
    ],
)
def test_at_each_line(tmp_path: Path, number: signal.Signals, older: bool, each: int) -> None:
    """Of what makes the folder and what waits for that, once another writer is kept out: nothing is left beside it."""
    known = Known.make(tmp_path, "folder", older)
    step, ended = 0, None
    while ended is None or ended in {128 + number, -number}:
        step += each
        known.reset()
        ended = known.place.struck(known.planned, step, number)
        new = known.hold()
        assert known.place.names() == ({"out"} if older or new else set())
    assert (ended, new) == (0, True)
    assert step > 150


def ended_by(command: list[str], number: signal.Signals, after: float) -> tuple[int, str]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(after)
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


@pytest.mark.parametrize(
    ("name", "number", "times"),
    [
        ("check", signal.SIGINT, 2),
        ("fix", signal.SIGINT, 2),
        *(
            pytest.param(name, number, 20, marks=pytest.mark.faults)
            for name, number in itertools.product(["check", "fix"], INTERRUPTS)
        ),
    ],
)
def test_at_any_time(tmp_path: Path, name: str, number: signal.Signals, times: int) -> None:
    """In a process of its own, once that has anything of specfix."""
    known = Known.make(tmp_path, "folder", False)
    begin = "import sys; sys.stdout.write('.'); sys.stdout.flush(); from specfix.__main__ import main; sys.exit(main())"
    arguments = known.arguments if name == "fix" else ["check", *known.arguments[1:-2]]
    command = [sys.executable, "-c", begin, *arguments]
    known.reset()
    began = time.monotonic()
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    whole = time.monotonic() - began
    chosen = random.Random(f"{name}{number}")
    interrupted = 0
    while interrupted < times:
        known.reset()
        status, said = ended_by(command, number, chosen.uniform(0.1, 0.9) * whole)
        assert "Traceback" not in said
        if said.startswith(".") and status != plain.returncode:
            assert status in {128 + number, -number}  # the second before it matters, and once Python is shutting down
            interrupted += 1
        assert known.place.names() <= {"out"}
        known.hold()
