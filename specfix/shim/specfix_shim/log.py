"""One line for each thing that was or was not done, through vLLM's own logging, and the same lines kept for status."""

from __future__ import annotations

import logging

# A child of the logger that vLLM configures, so that the lines appear among its own.
LOGGER = logging.getLogger("vllm.plugins.specfix_shim")

said: list[str] = []


class Inert(Exception):
    """A patch is not needed here, or what it would change does not look as expected. The text says which."""


def say(patch: str, text: str, level: int = logging.INFO) -> None:
    """Log a line, once in a process."""
    line = f"{patch}: {text}" if patch else text
    if line not in said:
        said.append(line)
        LOGGER.log(level, "specfix shim: %s", line)
