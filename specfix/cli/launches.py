"""Several launches checked one after the other, with a progress bar on a terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from specfix.checker.report import Checked, Remark
from specfix.checking import choose
from specfix.deployment.machines import find_hardware
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck
from specfix.launch.manifests import MENTION, Found, NoLaunch, launches_in
from specfix.launch.yaml_file import read_text
from specfix.launching import NoSpeculation, from_command, gather_launch

TOOLS = frozenset({".git", ".venv", "venv", "node_modules", ".tox", "site-packages"})
SUFFIXES = (".yaml", ".yml", ".sh")
SPECULATION = re.compile(r"speculative[-_](config|model|tokens)|spec-(method|model|tokens)|num_speculative_tokens")
PATTERN = re.compile(r"[*?[]")


def check_launches(
    files: Sequence[str], command: Sequence[str], engines: Sequence[str | None], **options: Any
) -> tuple[list[list[Checked]], list[Remark]]:
    """A check of each server that the files and the command start, in their order, on each of ``engines``.

    Of several, one that cannot be read is reported and the rest go on. Raises CannotCheck where the only one cannot.
    """
    found: list[Found | Checked | Remark] = [from_command(command)] if command else []
    found += all_launches(files)
    servers = [each for each in found if not isinstance(each, Remark)]
    if len(servers) == 1:
        if isinstance(servers[0], Checked):
            raise CannotCheck(servers[0].problem)
        by_release = [[checked(servers[0], engine=engine, **options)] for engine in engines]
        return by_release, [each for each in found if isinstance(each, Remark)]
    if options.get("target") is not None:
        raise CannotCheck(f"TARGET is given, and {len(servers)} launches: it can stand for the model of one")
    return check_all(found, engines, **options)


def check_all(
    found: Sequence[Found | Checked | Remark], engines: Sequence[str | None], **options: Any
) -> tuple[list[list[Checked]], list[Remark]]:
    """For each of ``engines`` a check of each that could be read, in their order, and what is to be said beside."""
    refuse_for_all(engines, options)
    by_release: list[list[Checked]] = [[] for _ in engines]
    for each in progress([one for one in found if not isinstance(one, Remark)]):
        if isinstance(each, Checked):
            checks: list[Checked | None] = [each] * len(engines)
        else:
            checks = [attempt(each, engine=engine, **options) for engine in engines]
        if any(checks):  # without speculation on every release there is nothing to say
            for row, one in zip(by_release, checks, strict=True):
                row.append(one or Checked(each.name, None, "asks for no speculation there"))
    return by_release, [each for each in found if isinstance(each, Remark)]


def refuse_for_all(engines: Sequence[str | None], options: Mapping[str, Any]) -> None:
    """Raise CannotCheck, once, for what would be said of each launch."""
    choose(options.get("select", ()), options.get("ignore", ()))
    for engine in (*engines, options.get("default_engine")):
        if engine is not None:
            find_engine(engine)
    hardware = options.get("hardware")
    if isinstance(hardware, str):
        find_hardware(hardware)


def all_launches(files: Sequence[str], named: bool = True) -> Iterator[Found | Checked | Remark]:
    """The servers of each file, and of the files in each folder, or why a file could not be read. One that starts none
    is told of where it is ``named``, as a launch; of others that speak of speculation there is a remark."""
    for name in files:
        path = Path(name)
        inside = path.is_dir()
        if not path.exists() and PATTERN.search(name):
            inside, several = True, matching(name)
            if not several:
                yield Checked(name, None, f"no file matches {name}")
        elif inside:
            several = sorted(launch_files(path))
        else:
            several = [path]
        for file in several:
            yield from launches_of(file, named and not inside, named)


def launches_of(file: Path, asked_for: bool, named: bool) -> Iterator[Found | Checked | Remark]:
    """The servers of one file. ``asked_for``: as a launch, by its own name."""
    text = ""
    try:
        text = read_text(file)
        if named or MENTION.search(text):  # of the many files that a hook is given, few speak of vLLM
            yield from launches_in(text, file)
    except NoLaunch as none:
        if asked_for:
            yield Checked(str(file), None, str(none))
        else:  # a folder of manifests holds others too
            yield from unread(file, text, str(none))
    except CannotCheck as problem:
        if named or file.suffix in SUFFIXES or not file.exists():
            yield Checked(str(file), None, str(problem))


def unread(file: Path, text: str, why: str) -> Iterator[Remark]:
    """What is said of a file that starts nothing and yet speaks of speculation: in a comment, in another kind."""
    found = SPECULATION.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        _, colon, kind = why.partition(": kind ")  # else it merely starts none
        yield Remark(f"mentions speculation, and no launch was read in it{colon}{kind}", str(file), line)


def matching(pattern: str) -> list[Path]:
    """The files, and those in the folders, that match, as a shell with ``**`` has it."""
    import glob

    names = glob.glob(pattern, recursive=True)  # noqa: PTH207 - of paths from anywhere, not below one folder
    found = [Path(each) for each in sorted(names)]
    files = [file for each in found for file in (sorted(launch_files(each)) if each.is_dir() else [each])]
    return [file for file in dict.fromkeys(files) if not TOOLS.intersection(file.parts)]


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
    if len(found) < 2 or sys.stderr is None or not sys.stderr.isatty():
        yield from found
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(found, description="checking", console=Console(stderr=True), transient=True)
