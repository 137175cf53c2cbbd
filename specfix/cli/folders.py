"""The files of folders that may hold a launch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple, NoReturn

from specfix.checker.report import Checked, Remark
from specfix.cli.access import barred, is_folder, is_link, pass_through

TOOLS = frozenset({".git", ".venv", "venv", "node_modules", ".tox", "site-packages"})
CACHE = re.compile(r"\.|_*(py)?caches?_*$", re.IGNORECASE)  # how a folder is called that is hidden, or a cache
SUFFIXES = (".yaml", ".yml", ".sh")
LOCK = ".#"  # how the name of a link begins that an editor leaves beside a file while it is being changed


class Below(NamedTuple):
    """What is in a folder and below it. ``links``: to folders, which are not followed; ``said``: what could not be
    looked into."""

    folders: list[Path]
    files: list[Path]
    links: list[Path]
    said: list[Checked | Remark]


def launch_files(paths: Iterable[Path], start: Path, within: Iterable[Path] = ()) -> list[Path | Checked | Remark]:
    """Those that are files, and of each folder the files below it that may hold a launch; and what could not be looked
    into, or is a link that leads elsewhere. ``start``: the folder that was named, theirs or one above; ``within``:
    further folders that were looked through."""
    found: list[Path | Checked | Remark] = []
    looked = [*within]
    met: set[Path] = set()
    links: list[Path] = []
    for path in paths:
        if not is_folder(path):
            found.append(path)
        elif path not in met:  # below one that came before
            seen = below(path, start)
            looked.append(path)
            met.update(seen.folders)
            links += seen.links
            found += sorted(each for each in seen.files if each.suffix in SUFFIXES and may_be_file(each))
            found += seen.said
    return [*found, *elsewhere(links, looked, start)]


def below(folder: Path, start: Path, *, hidden: bool = True) -> Below:
    """All but what is of tools, and what is not ``hidden``. A link to a folder may lead round in a circle, and a folder
    be deeper than Python calls itself."""
    found = Below([], [], [], [])
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        found.folders.append(here)
        try:
            pass_through(here)
            _, folders, files = next(os.walk(here, onerror=refuse))  # this one alone
        except OSError as error:
            found.said.extend(unseen(here, error, start))
            continue
        for path in (Path(here, name) for name in sorted(files) if hidden or not name.startswith(".")):
            found.files.append(path)
            if path.suffix not in SUFFIXES and (why := barred(path)):  # to a folder, perhaps
                found.said.extend(unseen(path, why, start))
        for name in sorted(folders, reverse=True):
            if name not in TOOLS and (hidden or not name.startswith(".")):
                path = Path(here, name)
                (found.links if is_link(path) else waiting).append(path)
    return found


def refuse(error: OSError) -> NoReturn:
    raise error


def elsewhere(links: Iterable[Path], folders: Iterable[Path], start: Path) -> Iterator[Remark]:
    """What is said of links that were not followed, and lead to what is not below ``folders``, which were looked
    through."""
    within = {folder.resolve() for folder in folders}
    for link in sorted(links):
        there = link.resolve()
        if within.isdisjoint((there, *there.parents)) and not of_tools(link, start):
            yield Remark("is a link to a folder elsewhere, and was not followed: name that too", str(link))


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


def may_be_file(path: Path) -> bool:
    """Whether it is a file, and no pipe, device or lock; what cannot be looked at may be, and its reader tells why."""
    if path.name.startswith(LOCK) and is_link(path):
        return False
    try:
        return S_ISREG(path.stat().st_mode)
    except OSError:
        return True
