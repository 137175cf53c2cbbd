"""The command line as users meet it: a process of its own, or main() in this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from specfix.cli import main

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
TARGET = str(EXAMPLES / "llama-3.1-8b-instruct")
DRAFT = str(EXAMPLES / "eagle3-llama-3.1-8b")


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def specfix(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``specfix`` with these arguments in this process."""

    def run(*arguments: str) -> Done:
        status = main(arguments)
        return Done(status, *capsys.readouterr())

    return run


@pytest.fixture
def process() -> Run:
    """Run ``specfix`` with these arguments and variables in a process of its own."""

    def run(*arguments: str, **environment: str) -> Done:
        command = [sys.executable, "-m", "specfix", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | environment, check=False, timeout=60
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, with the working directory somewhere in it."""
    (tmp_path / "deploy").mkdir()
    monkeypatch.chdir(tmp_path / "deploy")
    return tmp_path


@pytest.fixture
def open_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user can look into, unlike the test's own."""
    folder = Path(tempfile.mkdtemp(prefix="specfix-"))
    folder.chmod(0o755)
    monkeypatch.chdir(folder)
    yield folder
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)
