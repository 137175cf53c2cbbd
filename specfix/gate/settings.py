"""``specfix.toml``, or ``[tool.specfix]`` in ``pyproject.toml``: what a project says once for all its checks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specfix.deployment.json_text import show
from specfix.errors import CannotCheck

if TYPE_CHECKING:
    import datetime

OWN, SHARED = "specfix.toml", "pyproject.toml"
TABLE = "[tool.specfix"  # a file without it is not even parsed
LIMIT = 1_000_000  # bytes


@dataclass(frozen=True, slots=True)
class Ignore:
    """Findings that are let pass: those whose code begins with ``code``, for a ``reason``, and no longer than the day
    ``until``, which still counts."""

    code: str
    reason: str
    until: datetime.date | None = None

    def holds(self, code: str, today: datetime.date) -> bool:
        return code.startswith(self.code) and (self.until is None or today <= self.until)


@dataclass(frozen=True, slots=True)
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

    Raises CannotCheck for a file that cannot be read, and for what it may not say.
    """
    for folder in upwards(start):
        for name in (OWN, SHARED):
            file = folder / name
            try:
                text = file.read_text("utf-8") if file.is_file() and file.stat().st_size <= LIMIT else ""
            except (OSError, UnicodeDecodeError) as error:
                raise CannotCheck(f"{file} cannot be read: {error}") from None
            if name == OWN and file.is_file():
                return parse(text, file, ())
            if TABLE in text:
                return parse(text, file, ("tool", "specfix"))
    return Settings()


def upwards(start: Path | None) -> Iterator[Path]:
    try:
        folder = (start or Path.cwd()).absolute()
    except OSError:  # the working directory is gone
        return
    yield from (folder, *folder.parents)


def parse(text: str, file: Path, table: tuple[str, ...]) -> Settings:
    """The settings that a file's text states."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        values: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CannotCheck(f"{file} is not valid TOML: {error}") from None
    for name in table:
        values = values.get(name, {}) if isinstance(values, dict) else {}
    if not isinstance(values, dict):
        raise CannotCheck(f"{file}: tool.specfix is {show(values)}, not a table")
    for name in values:
        if name not in KEYS:
            import difflib

            near = difflib.get_close_matches(name, KEYS, 1)
            raise CannotCheck(f"{file} has no setting {name!r}" + (f"; there is {near[0]}" if near else ""))
    for name, value in values.items():
        if not KEYS[name](value):
            raise CannotCheck(f"{file}: {name} is {show(value)}")
    baseline = values.get("baseline")
    return Settings(
        str(file),
        tuple(values.get("select", ())),
        tuple(ignore(each, file) for each in values.get("ignore", ())),
        values.get("fail-on"),
        values.get("strict"),
        values.get("engine"),
        values.get("hardware"),
        None if baseline is None else file.parent / baseline,
    )


def ignore(given: Any, file: Path) -> Ignore:
    """One ``[[ignore]]``. Raises CannotCheck where it has no reason, or a date that is none."""
    if not isinstance(given, dict) or not set(given) <= {"code", "reason", "until"}:
        raise CannotCheck(f"{file}: an ignore has a code, a reason and perhaps until = DATE, not {show(given)}")
    import datetime

    code, reason, until = given.get("code"), given.get("reason"), given.get("until")
    if not isinstance(code, str) or not code:
        raise CannotCheck(f"{file}: an ignore has the code {show(code)}")
    if not isinstance(reason, str) or not reason.strip():
        raise CannotCheck(f"{file}: ignoring {code} needs a reason")
    if isinstance(until, datetime.datetime):
        until = until.date()
    if until is not None and not isinstance(until, datetime.date):
        raise CannotCheck(
            f"{file}: ignoring {code} ends on {show(until)}, which is no date (2026-12-31, without quotes)"
        )
    return Ignore(code.upper(), reason.strip(), until)


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
