"""Several launches checked one after the other, with a progress bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from specfix.checker.report import Checked
from specfix.errors import CannotCheck
from specfix.launch.manifests import MENTION, Found, NoLaunch, launches_in
from specfix.launch.yaml_file import read_text
from specfix.launching import NoSpeculation, from_command, gather_launch

TOOLS = frozenset({".git", ".venv", "venv", "node_modules", ".tox", "site-packages"})
SUFFIXES = (".yaml", ".yml", ".sh")


def check_launches(files: Sequence[str], command: Sequence[str], **options: Any) -> list[Checked]:
    """A check of each server that the files and the command start, in their order.

    Of several, one that cannot be read is reported and the rest go on. Raises CannotCheck where the only one cannot.
    """
    found: list[Found | Checked] = [from_command(command)] if command else []
    found += all_launches(files)
    if len(found) == 1:
        if isinstance(found[0], Checked):
            raise CannotCheck(found[0].problem)
        return [checked(found[0], **options)]
    if options.get("target") is not None:
        raise CannotCheck(f"TARGET is given, and {len(found)} launches: it can stand for the model of one")
    return check_all(found, **options)


def check_all(found: Sequence[Found | Checked], **options: Any) -> list[Checked]:
    """A check of each that could be read, in their order."""
    checks = (each if isinstance(each, Checked) else attempt(each, **options) for each in progress(found))
    return [each for each in checks if each is not None]


def all_launches(files: Sequence[str], named: bool = True) -> Iterator[Found | Checked]:
    """The servers of each file, and of the files in each folder, or why a file could not be read. One that starts none
    is told of where it is ``named``, as a launch."""
    for name in files:
        path = Path(name)
        inside = path.is_dir()
        for file in sorted(launch_files(path)) if inside else [path]:
            try:
                if not named and not file.is_file():
                    continue
                text = read_text(file)
                if named or MENTION.search(text):  # of the many files that a hook is given, few speak of vLLM
                    yield from launches_in(text, file)
            except NoLaunch as none:
                if named and not inside:  # a folder of manifests holds others too
                    yield Checked(str(file), None, str(none))
            except CannotCheck as problem:
                if named or file.suffix in SUFFIXES:
                    yield Checked(str(file), None, str(problem))


def launch_files(folder: Path) -> Iterator[Path]:
    """The files below a folder that may hold a launch, but for those of tools."""
    for file in folder.rglob("*"):
        parts = file.relative_to(folder).parts
        if file.suffix in SUFFIXES and file.is_file() and not any(part in TOOLS for part in parts):
            yield file


def attempt(found: Found, **options: Any) -> Checked | None:
    """The check, or why there is none; None for a server without speculation, of which there is nothing to say."""
    try:
        return checked(found, **options)
    except NoSpeculation:
        return None
    except CannotCheck as problem:
        return Checked(found.name, None, str(problem))


def checked(found: Found, **options: Any) -> Checked:
    case = gather_launch(found, **options)
    return Checked(found.name, case.check(case.deployment))


def progress(found: Sequence[Found | Checked]) -> Iterator[Found | Checked]:
    """The same, with a bar on standard error where that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield from found
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(found, description="checking", console=Console(stderr=True), transient=True)
