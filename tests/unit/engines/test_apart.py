"""A source is read in a process of its own: it says the same, and what asks for too much is ended."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specfix.engines import apart, readers
from specfix.engines.serial import dump
from specfix.errors import CannotCheck

Make = Callable[..., Path]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="the bounds are those of POSIX")


def test_it_says_the_same(make: Make) -> None:
    package = make(own="0.25.1")
    assert dump(apart.read_engine(package, "here")) == dump(readers.read_engine(package, "here"))


def test_half_an_engine_is_refused_as_ever(make: Make) -> None:
    package = make()
    (package / "envs.py").unlink()
    with pytest.raises(CannotCheck, match=r"envs\.py is missing"):
        apart.read_engine(package, "here")


def test_what_takes_for_ever_is_ended(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SECONDS", 3)
    package = make()
    endless = 're.search("(a+)+$", "a" * 60 + "b")'
    (package / "envs.py").write_text(f"import re\nenvironment_variables = {{'VLLM_X': lambda: {endless}}}\n")
    start = time.monotonic()
    with pytest.raises(CannotCheck, match="cannot be read within 3 s"):
        apart.read_engine(package, "here")
    assert time.monotonic() - start < 3 * 5


def test_what_takes_all_memory_is_ended(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "MEMORY", 400 << 20)
    package = make()
    (package / "envs.py").write_text(f"environment_variables = [{'(),' * 2_000_000}]\n")
    with pytest.raises(CannotCheck, match=r"memory|envs\.py is missing or not Python"):
        apart.read_engine(package, "here")


def test_no_secret_of_the_environment_is_handed_over(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_0123")
    asked: list[dict[str, Any]] = []
    run = subprocess.run

    def noted(*given: Any, **named: Any) -> Any:
        asked.append(named)
        return run(*given, **named)

    monkeypatch.setattr(subprocess, "run", noted)
    apart.read_engine(make(), "here")
    assert "HF_TOKEN" not in asked[0]["env"] and "hf_0123" not in asked[0]["input"]
