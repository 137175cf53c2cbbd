"""Several launches checked one after the other, with a progress bar on a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any

from specfix.checker.report import Checked, Remark, without_name
from specfix.checking import choose
from specfix.deployment.machines import find_hardware
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck
from specfix.launch.manifests import MENTION, Found, NoLaunch, launches_in
from specfix.launch.yaml_file import Unreadable, read_content, text_of
from specfix.launching import NoSpeculation, from_command, gather_launch

TOOLS = frozenset({".git", ".venv", "venv", "node_modules", ".tox", "site-packages"})
CACHE = re.compile(r"\.|_*(py)?caches?_*$", re.IGNORECASE)  # how a folder is called that is hidden, or a cache
SUFFIXES = (".yaml", ".yml", ".sh")
SCRIPTS = (".bash", "")  # what else a script is called that is given by its own name
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
        path, below = Path(name), None
        several: Sequence[Path | Checked | Remark] = [path]
        if not os.path.lexists(path) and PATTERN.search(name):
            below = start_of(name)
            several = matching(name, below)
        elif is_folder(path):
            below = path
            several = launch_files(path, path)
        for each in several:
            if isinstance(each, Path):
                yield from launches_of(each, named, below)
            else:
                yield each


def launches_of(file: Path, named: bool, below: Path | None) -> Iterator[Found | Checked | Remark]:
    """The servers of one file: one given by its own name, or merely met ``below`` a folder that was."""
    try:
        content = read_content(file)
    except Unreadable as problem:
        if below is None:
            yield Checked(str(file), None, str(problem))
        elif not of_tools(file.parent, below):
            yield Remark(without_name(str(problem), str(file)), str(file))
        return
    text, asked_for = "", named and below is None
    try:
        text = text_of(content, file)
        if named or MENTION.search(text):  # of the many files that a hook is given, few speak of vLLM
            yield from launches_in(text, file)
    except NoLaunch as none:
        if asked_for:  # as a launch
            yield Checked(str(file), None, str(none))
        else:  # a folder of manifests holds others too
            yield from unread(file, text, str(none))
    except CannotCheck as problem:
        likely = named or file.suffix in SUFFIXES or (below is None and not text and file.suffix in SCRIPTS)
        if asked_for or (likely and (text or mentions(content))):
            yield Checked(str(file), None, str(problem))


def mentions(content: bytes) -> bool:
    """Whether a file that may be no text speaks of vLLM, in whatever encoding."""
    return MENTION.search(content.replace(b"\0", b"").decode("latin-1")) is not None


def unread(file: Path, text: str, why: str) -> Iterator[Remark]:
    """What is said of a file that starts nothing and yet speaks of speculation: in a comment, in another kind."""
    found = SPECULATION.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        _, colon, kind = why.partition(": kind ")  # else it merely starts none
        yield Remark(f"mentions speculation, and no launch was read in it{colon}{kind}", str(file), line)


def start_of(pattern: str) -> Path:
    """The folder that a pattern names, below which it is compared with names."""
    while PATTERN.search(pattern):
        pattern = os.path.dirname(pattern)  # noqa: PTH120 - a Path drops what ends with a slash
    return Path(pattern)


def matching(pattern: str, start: Path) -> list[Path | Checked | Remark]:
    """The files, and those in the folders, that match, as a shell with ``**`` has it; and what could not be looked
    into."""
    import glob

    names = glob.glob(pattern, recursive=True)  # noqa: PTH207 - of paths from anywhere, not below one folder
    paths = [path for path in map(Path, sorted(names)) if not TOOLS.intersection(path.parts)]
    found = [each for path in paths for each in (launch_files(path, start) if is_folder(path) else [path])]
    shut = [*closed(pattern, start)]
    if not found and not any(isinstance(each, Checked) for each in shut):
        found = [Checked(pattern, None, f"no file matches {pattern}")]
    return [*dict.fromkeys([*found, *shut])]


def closed(pattern: str, start: Path) -> Iterator[Checked | Remark]:
    """The folders that a pattern leads through and that may not be looked into, which is nothing to a shell. Only where
    a part of it is compared with names they must be listed: what is named is opened in any that lets one pass."""
    import glob

    while PATTERN.search(pattern):
        pattern, part = os.path.split(pattern)
        listed = PATTERN.search(part) or os.path.basename(pattern) == "**"  # noqa: PTH119
        for path in map(Path, sorted(glob.glob(pattern, recursive=True)) if pattern else ["."]):  # noqa: PTH207
            try:
                if is_folder(path) or barred(path):
                    pass_through(path)
                    if listed:
                        os.scandir(path).close()
            except OSError as error:
                yield from unseen(path, error, start)


def unseen(path: Path, error: OSError, start: Path) -> Iterator[Checked | Remark]:
    """That a folder cannot be looked into: no pass where it is the one that was named, ``start``; of one that is met
    below it, it is merely said."""
    if path == start:
        yield Checked(str(path), None, f"the folder cannot be looked into: {error.strerror}")
    elif not of_tools(path, start):
        what = "is a link that cannot be followed" if is_link(path) else "the folder cannot be looked into"
        yield Remark(f"{what}: {error.strerror}", str(path))


def of_tools(folder: Path, start: Path) -> bool:
    """Whether a folder below ``start`` is where tools keep what is theirs."""
    return any(part in TOOLS or CACHE.match(part) for part in folder.parts[len(start.parts) :])


def is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - a Path raises where it may not look


def is_link(path: Path) -> bool:
    return os.path.islink(path)  # noqa: PTH114 - a Path raises where it may not look


def barred(path: Path) -> OSError | None:
    """Why a link, to a folder perhaps, may not be followed; None for one that may be, or leads nowhere."""
    if is_link(path):
        try:
            path.stat()
        except PermissionError as error:
            return error
        except OSError:
            pass
    return None


def pass_through(folder: str | Path) -> None:
    """Raise OSError for a folder in which nothing can be opened, though it may be listed."""
    os.stat(os.path.join(folder, "."))  # noqa: PTH116, PTH118 - a Path drops the dot, which tells


def launch_files(folder: Path, start: Path) -> list[Path | Checked | Remark]:
    """The files below a folder that may hold a launch, but for those of tools; and what could not be looked into, or is
    a link that leads elsewhere. ``start``: the folder that was named, this or one above."""
    files: list[Path] = []
    refused: list[OSError] = []
    links: list[Path] = []
    for root, folders, names in os.walk(folder, onerror=refused.append):
        try:
            pass_through(root)
        except OSError as error:
            refused.append(error)
            folders.clear()
            continue
        folders[:] = [name for name in folders if name not in TOOLS]
        paths = [Path(root, name) for name in names]
        links += [path for name in folders if is_link(path := Path(root, name))]
        refused += [why for path in paths if path.suffix not in SUFFIXES and (why := barred(path))]
        files += [path for path in paths if path.suffix in SUFFIXES and may_be_file(path)]
    within = folder.resolve()
    said = [each for error in refused for each in unseen(Path(error.filename), error, start)]
    for path in sorted(links):
        if not path.resolve().is_relative_to(within) and not of_tools(path, start):
            said.append(Remark("is a link to a folder elsewhere, and was not followed: name that too", str(path)))
    return [*sorted(files), *said]


def may_be_file(path: Path) -> bool:
    """Whether it is a file, and no pipe, device or lock; what cannot be looked at may be, and its reader tells why."""
    if path.name.startswith(LOCK) and is_link(path):
        return False
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
