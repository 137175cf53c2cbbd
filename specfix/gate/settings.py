"""``specfix.toml``, or ``[tool.specfix]`` in ``pyproject.toml``: what a project says once for all its checks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specfix.deployment.json_text import plain, read_bytes, show
from specfix.errors import CannotCheck
from specfix.record import record
from specfix.whole import working_directory

if TYPE_CHECKING:
    import datetime

OWN, SHARED = "specfix.toml", "pyproject.toml"
MENTION = b"specfix"  # a pyproject.toml without it is others', and is not even parsed
IGNORE_KEYS = ("code", "reason", "until")
# the header of an [[ignore]], of which TOML's reader gives no line
HEADER = re.compile(
    r"""^\s*\[\[\s*(?:["']?tool["']?\s*\.\s*["']?specfix["']?\s*\.\s*)?["']?ignore["']?\s*\]\]""",
    re.MULTILINE,
)
LIMIT = 1_000_000  # bytes
DOTS_LIMIT = 2_000  # in a line, or what is as much work in several: TOML's reader takes the square of a key's
IGNORES_LIMIT = 1_000


@record(frozen=True)
class Ignore:
    """Findings that are let pass: those whose code begins with ``code``, for a ``reason``, and no longer than the day
    ``until``, which still counts. ``file`` and ``line`` say where that is written."""

    code: str
    reason: str
    until: datetime.date | None = None
    file: str = ""
    line: int | None = None

    def ended(self, today: datetime.date) -> bool:
        return self.until is not None and today > self.until

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@record(frozen=True)
class Settings:
    """What the file says; None where it does not. ``file`` is where, "" where there is none."""

    file: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[Ignore, ...] = ()
    fail_on: str | None = None
    strict: bool | None = None
    engine: str | None = None
    hardware: str | None = None
    baseline: Path | None = None


def find_settings(start: Path | None = None) -> Settings:
    """The settings of the nearest folder that has some, from ``start`` (by default the working directory) upwards.

    Raises CannotCheck for a specfix.toml that is there in whatever form and cannot be read, for a pyproject.toml that
    speaks of specfix and is no text, and for what either may not say.
    """
    here = (start or working_directory()).absolute()
    for folder in (here, *here.parents):
        own, shared = folder / OWN, folder / SHARED
        if is_there(own):
            text = text_of(read_bytes(own, str(own), LIMIT), own)
            return parse(toml(text, own), text, own)
        try:
            data = read_bytes(shared, str(shared), LIMIT)
        except CannotCheck:
            continue
        if MENTION in data:
            text = text_of(data, shared)
            tool = toml(text, shared).get("tool")
            if isinstance(tool, dict) and "specfix" in tool:
                return parse(tool["specfix"], text, shared)
    return Settings()


def is_there(file: Path) -> bool:
    """Whether there is one of that name, in whatever form. Raises CannotCheck where it may not be looked for."""
    try:
        file.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CannotCheck(f"{file} cannot be read: {error}") from None
    return True


def text_of(data: bytes, file: Path) -> str:
    """The text of settings. Raises CannotCheck."""
    if len(data) > LIMIT:
        raise CannotCheck(f"{file} is larger than {LIMIT} bytes")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")  # with or without a byte order mark
    except UnicodeDecodeError as error:
        raise CannotCheck(f"{file} cannot be read: {error}") from None


def toml(text: str, file: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if sum(line.count(".") ** 2 for line in text.split("\n")) > DOTS_LIMIT**2:
        raise CannotCheck(f"{file} has lines of more than {DOTS_LIMIT:,} dots")
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: an integer of thousands of digits, too
        raise CannotCheck(f"{file} is not valid TOML: {error}") from None
    return values


def parse(values: Any, text: str, file: Path) -> Settings:
    """The settings that a file's table states, whose text is ``text``."""
    if not isinstance(values, dict):
        raise CannotCheck(f"{file}: tool.specfix is {show(values)}, not a table")
    for name in values:
        if name not in KEYS:
            raise CannotCheck(f"{file} has no setting '{plain(name)}'{nearest(name, KEYS)}")
    for name, value in values.items():
        if not KEYS[name](value):
            raise CannotCheck(f"{file}: {name} is {show(value)}")
    baseline = values.get("baseline")
    return Settings(
        str(file),
        tuple(values.get("select", ())),
        tuple(ignores(values.get("ignore", ()), text, file)),
        values.get("fail-on"),
        values.get("strict"),
        values.get("engine"),
        values.get("hardware"),
        None if baseline is None else file.parent / baseline,
    )


def nearest(name: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, list(known), 1)
    return f"; there is {near[0]}" if near else ""


def ignores(given: list[Any], text: str, file: Path) -> Iterator[Ignore]:
    """Each ``[[ignore]]`` with its line, where it has a header of its own."""
    if len(given) > IGNORES_LIMIT:
        raise CannotCheck(f"{file} ignores more than {IGNORES_LIMIT:,} codes")
    lines = [text.count("\n", 0, header.end()) + 1 for header in HEADER.finditer(text)]
    known = lines if len(lines) == len(given) else [None] * len(given)
    for each, line in zip(given, known, strict=True):
        yield ignore(each, str(file), line)


def ignore(given: Any, file: str, line: int | None) -> Ignore:
    """One ``[[ignore]]``. Raises CannotCheck where it has no reason, or a date that is none."""
    place = Ignore("", "", None, file, line).place
    if not isinstance(given, dict):
        raise CannotCheck(f"{place}: an ignore has a code, a reason and perhaps until = DATE, not {show(given)}")
    for name in given:
        if name not in IGNORE_KEYS:
            raise CannotCheck(f"{place}: an ignore has no key '{plain(name)}'{nearest(name, IGNORE_KEYS)}")
    import datetime

    code, reason, until = given.get("code"), given.get("reason"), given.get("until")
    if not isinstance(code, str) or not code.strip():
        raise CannotCheck(f"{place}: an ignore has the code {show(code)}")
    if not isinstance(reason, str) or not reason.strip():
        raise CannotCheck(f"{place}: ignoring {code} needs a reason")
    if isinstance(until, datetime.datetime):
        until = until.date()
    if until is not None and not isinstance(until, datetime.date):
        raise CannotCheck(
            f"{place}: ignoring {code} ends on {show(until)}, which is no date (2026-12-31, without quotes)"
        )
    return Ignore(code.strip().upper(), reason.strip(), until, file, line)


def text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and each for each in value)


def text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


KEYS = {
    "select": text_list,
    "ignore": lambda value: isinstance(value, list),
    "fail-on": lambda value: value in ("error", "warning", "note", "never"),
    "strict": lambda value: isinstance(value, bool),
    "engine": text,
    "hardware": text,
    "baseline": text,
}
