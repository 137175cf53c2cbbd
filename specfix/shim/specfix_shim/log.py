"""One line for each thing that was or was not done, through vLLM's own logging, and the same lines kept for status."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# A child of the logger that vLLM configures, so that the lines appear among its own.
LOGGER = logging.getLogger("vllm.plugins.specfix_shim")
LEFT = "left as it was"

said: list[str] = []
_waiting: list[tuple[int, str]] = []


class Inert(Exception):
    """A patch is not needed here, or what it would change does not look as expected. The text says which."""


@contextmanager
def guarded(patch: str, outcome: str) -> Iterator[None]:
    """Whatever is raised inside becomes the line ``outcome: why``, but for what a signal raises to end the process."""
    try:
        yield
    except Inert as reason:
        say(patch, f"{outcome}: {reason}")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        say(patch, f"{outcome}: {_described(error)}", logging.WARNING)


def say(patch: str, text: str, level: int = logging.INFO) -> None:
    """Log a line, once in a process. Some releases set logging up late: until then lines wait for the next one.

    Never raises, though a handler may, or a stream that was closed.
    """
    try:
        line = f"{patch}: {text}" if patch else text
        if line in said:
            return
        said.append(line)
        _waiting.append((level, line))
        if LOGGER.hasHandlers() or (level >= logging.WARNING and _is_open(sys.stderr)):
            lines = _waiting.copy()
            _waiting.clear()
            for each in lines:
                LOGGER.log(each[0], "specfix shim: %s", each[1])
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        pass


def _is_open(stream: Any) -> bool:
    """Whether there is still a file below it: what stays in its buffer would change the process's exit status."""
    try:
        number = stream.fileno()
    except Exception:
        return True  # there never was one
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # of its own making
        return type(error).__name__
