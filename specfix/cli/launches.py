"""Several launches checked one after the other, with a progress bar on a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any

from specfix.checker.report import Checked, Remark
from specfix.checking import choose
from specfix.deployment.machines import find_hardware
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck
from specfix.launch.manifests import MENTION, Found, NoLaunch, launches_in
from specfix.launch.yaml_file import Unreadable, read_text
from specfix.launching import NoSpeculation, from_command, gather_launch

TOOLS = frozenset({".git", ".venv", "venv", "node_modules", ".tox", "site-packages"})
SUFFIXES = (".yaml", ".yml", ".sh")
LOCK = ".#"  # how the name of a link begins that an editor leaves beside a file while it is being changed
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
    """The servers of each file, and of the files in each folder, or why a file or folder could not be read. One that
    starts none is told of where it is ``named``, as a launch; of others that speak of speculation there is a remark."""
    for name in files:
        if not name:
            raise CannotCheck("the name of a file is empty: give one, or a folder")
        path = Path(name)
        inside = is_folder(path)
        several: Sequence[Path | Checked | Remark] = launch_files(path) if inside else [path]
        if not os.path.lexists(path) and PATTERN.search(name):
            inside, several = True, matching(name) or [Checked(name, None, f"no file matches {name}")]
        for each in several:
            if isinstance(each, Path):
                yield from launches_of(each, named and not inside, named)
            else:
                yield each


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
        if named or file.suffix in SUFFIXES or isinstance(problem, Unreadable):
            yield Checked(str(file), None, str(problem))


def unread(file: Path, text: str, why: str) -> Iterator[Remark]:
    """What is said of a file that starts nothing and yet speaks of speculation: in a comment, in another kind."""
    found = SPECULATION.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        _, colon, kind = why.partition(": kind ")  # else it merely starts none
        yield Remark(f"mentions speculation, and no launch was read in it{colon}{kind}", str(file), line)


def matching(pattern: str) -> list[Path | Checked | Remark]:
    """The files, and those in the folders, that match, as a shell with ``**`` has it; and what could not be looked
    into."""
    import glob

    names = glob.glob(pattern, recursive=True)  # noqa: PTH207 - of paths from anywhere, not below one folder
    paths = [Path(name) for name in sorted(names)]
    found = [each for path in paths for each in (launch_files(path) if is_folder(path) else [path])]
    kept = [each for each in found if not (isinstance(each, Path) and TOOLS.intersection(each.parts))]
    return [*dict.fromkeys([*kept, *closed(pattern)])]


def closed(pattern: str) -> Iterator[Checked]:
    """The folders that a pattern leads through and that may not be looked into, which is nothing to a shell."""
    import glob

    while PATTERN.search(pattern):
        pattern = os.path.dirname(pattern)  # noqa: PTH120 - a Path drops what ends with a slash
        for path in map(Path, sorted(glob.glob(pattern, recursive=True))):  # noqa: PTH207
            try:
                if is_folder(path) and not TOOLS.intersection(path.parts):
                    os.scandir(path).close()
                    os.stat(os.path.join(path, "."))  # noqa: PTH116, PTH118 - a Path drops the dot, which tells
            except OSError as error:
                yield unseen(path, error)


def unseen(folder: Path, error: OSError) -> Checked:
    return Checked(str(folder), None, f"the folder cannot be looked into: {error.strerror}")


def is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - a Path raises where it may not look


def launch_files(folder: Path) -> list[Path | Checked | Remark]:
    """The files below a folder that may hold a launch, but for those of tools; and what could not be looked into, or is
    a link that leads elsewhere."""
    files: list[Path] = []
    refused: list[OSError] = []
    links: list[Path] = []
    for root, folders, names in os.walk(folder, onerror=refused.append):
        folders[:] = [name for name in folders if name not in TOOLS]
        links += [path for name in folders if (path := Path(root, name)).is_symlink()]
        paths = [Path(root, name) for name in names if not name.startswith(LOCK)]
        files += [path for path in paths if path.suffix in SUFFIXES and may_be_file(path)]
    within = folder.resolve()
    elsewhere = [str(path) for path in sorted(links) if not path.resolve().is_relative_to(within)]
    return [
        *sorted(files),
        *(unseen(Path(error.filename), error) for error in refused),
        *(Remark("is a link to a folder elsewhere, and was not followed: name that too", each) for each in elsewhere),
    ]


def may_be_file(path: Path) -> bool:
    """Whether it is a file, and no pipe or device; what cannot be looked at may be, and its reader tells why."""
    try:
        return S_ISREG(path.stat().st_mode)
    except OSError:
        return True


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
