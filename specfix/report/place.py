"""Where a finding stands: file names as the reader knows them, the offending line, what to mark in it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from specfix.deployment.json_text import show
from specfix.deployment.serving import COMMON
from specfix.record import record

if TYPE_CHECKING:
    from specfix.deployment import Deployment, Location
    from specfix.deployment.config import Config

NO_FILES = frozenset({"command line", "environment", "hardware"})


@record(frozen=True)
class Excerpt:
    """Lines of a file by number; ``start`` and ``end`` bound what is at fault in line ``number``."""

    number: int
    lines: dict[int, str]
    start: int
    end: int


def configs(deployment: Deployment) -> Iterator[Config]:
    """Every file that was read."""
    for model in (deployment.target, deployment.draft):
        if model is not None:
            yield model.config
            if model.generation_config is not None:
                yield model.generation_config


def excerpt(deployment: Deployment, location: Location, around: int = 2) -> Excerpt | None:
    """The line of ``location`` with ``around`` neighbours on each side, or None where there is no line."""
    if location.line is None:
        return None
    texts = {config.file: config.text for config in configs(deployment)}
    text = texts.get(location.file) or deployment.sources.get(location.file, "")
    lines = text.split("\n")  # str.splitlines knows more line ends than JSON's readers
    number = location.line
    if not 1 <= number <= len(lines):
        return None
    near = range(max(1, number - around), min(len(lines), number + around) + 1)
    return Excerpt(number, {at: lines[at - 1] for at in near}, *span(lines[number - 1], location.pointer))


def span(line: str, pointer: str) -> tuple[int, int]:
    """Bounds of ``"key": value`` for the innermost key of ``pointer`` in ``line``, else of the whole line."""
    for token in reversed(pointer.split("/")[1:]):
        key = json.dumps(token.replace("~1", "/").replace("~0", "~"), ensure_ascii=False)
        found = re.search(re.escape(key) + r"\s*:\s*", line)
        if found:
            try:
                return found.start(), json.JSONDecoder().raw_decode(line, found.end())[1]
            except (ValueError, RecursionError):  # the value goes on below
                return found.start(), len(line.rstrip().rstrip(","))
    return len(line) - len(line.lstrip()), len(line.rstrip().rstrip(","))


def shown(file: str) -> str:
    """``file`` relative to the working directory where it lies below it."""
    return below(file, ".") or file


def below(file: str, folder: str) -> str | None:
    """``file`` relative to ``folder``, or None where it does not lie below it. Links are not followed."""
    try:
        path = os.path.relpath(file, folder)
    except (OSError, ValueError):  # the working directory is gone; another drive
        return None
    return None if path == os.pardir or path.startswith(os.pardir + os.sep) else path


def option(deployment: Deployment, location: Location) -> str:
    """An option, variable or fact of the machine with its value: for what stands in no file."""
    name = location.pointer
    if location.file == "hardware":
        machine = deployment.hardware.name if deployment.hardware else "not known"
        return f"hardware {machine}" + (f": {name} is {getattr(deployment.hardware, name, None)}" if name else "")
    if location.file == "environment":
        value = deployment.serving.env.get(name)
        return f"environment: {name} is not set" if value is None else f"environment: {name}={value}"
    serving = deployment.serving
    if name == "--speculative-config":
        return name  # what of it is meant is in the message
    _, nested, key = name.partition("--speculative-config.")
    if nested:
        given = getattr(serving, key) if key in COMMON else serving.speculative.get(key)
        return f"speculative config: {key}" + (" (not given)" if given is None else f" {show(given)}")
    if any(misfit.location == location for misfit in serving.misfits):
        return name  # of the command; what it says is in the message
    flag = name.removeprefix("--").replace("-", "_")
    given = serving.flag(flag)
    if given is None or (given is False and flag in COMMON):
        return f"{name} (not given)"
    if isinstance(given, bool):
        return name if given else f"--no-{name.removeprefix('--')}"
    return f"{name} {given if isinstance(given, str | int) else show(given)}"
