"""A kill at any moment leaves the output whole or absent, nothing lost, and the models as they were."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .cases import Known


def kill(*_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("form", "older", "options"),
    [
        ("folder", False, {}),
        ("folder", True, {}),
        pytest.param("launch", True, {}, marks=pytest.mark.faults),
        pytest.param("launch", False, {"hardware": "cpu"}, marks=pytest.mark.faults),
        pytest.param("folder", True, {"hardware": "cpu", "env": {"HF_TOKEN": "hunter2"}}, marks=pytest.mark.faults),
        pytest.param("folder", True, {"copy": True}, marks=pytest.mark.faults),
    ],
)
def test_killed_at_each_point(
    tmp_path: Path, form: str, older: bool, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Known.make(tmp_path, form, older, **options)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # slow, and of no use to a process that is killed
    seen, step, names = set(), 0, None
    while names is None:
        step += 1
        known.reset()
        ended = known.place.forked(known.arguments, step, kill)
        assert ended.status in (0, -signal.SIGKILL), ended.said
        names = ended.names if ended.status == 0 else None
        seen.add(known.hold())
        known.run_again()
    points = Counter(names)
    assert step == len(names) + 1
    assert points["os.rename"] == points["renamed"] == 1 + older
    assert points["fsync"] == points["fsynced"] > 5 and points["half"] > 2
    assert seen == ({None, False, True} if older else {None, True})


@pytest.mark.faults
@pytest.mark.parametrize("form", ["folder", "launch"])
def test_killed_at_any_time(tmp_path: Path, form: str) -> None:
    """A process of its own, killed by the clock; its syncs are real."""
    known = Known.make(tmp_path, form, True)
    command = [sys.executable, "-m", "specfix", *known.arguments]
    known.reset()
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    whole = time.monotonic() - began
    chosen = random.Random(form)
    killed = 0
    while killed < 30:
        known.reset()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chosen.uniform(0, whole))
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        known.hold()
        known.run_again()
