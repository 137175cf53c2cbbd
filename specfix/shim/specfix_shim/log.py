"""One line for each thing that was or was not done, through vLLM's own logging, and the same lines kept for status."""

from __future__ import annotations

import logging

# A child of the logger that vLLM configures, so that the lines appear among its own.
LOGGER = logging.getLogger("vllm.plugins.specfix_shim")

said: list[str] = []
_waiting: list[tuple[int, str]] = []


class Inert(Exception):
    """A patch is not needed here, or what it would change does not look as expected. The text says which."""


def say(patch: str, text: str, level: int = logging.INFO) -> None:
    """Log a line, once in a process. Some releases set logging up late: until then lines wait for the next one."""
    line = f"{patch}: {text}" if patch else text
    if line in said:
        return
    said.append(line)
    _waiting.append((level, line))
    if LOGGER.hasHandlers() or level >= logging.WARNING:
        for each in _waiting:
            LOGGER.log(each[0], "specfix shim: %s", each[1])
        _waiting.clear()
