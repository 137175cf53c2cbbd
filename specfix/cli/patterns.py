"""The files that a pattern stands for, as in a shell with ``**``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from specfix.checker.report import Checked, Remark
from specfix.cli.access import barred, is_folder, pass_through
from specfix.cli.folders import TOOLS, below, elsewhere, launch_files, unseen

PATTERN = re.compile(r"[*?[]")
DEEP = "**"  # a part that stands for folders of any depth


def matching(pattern: str) -> tuple[Path, list[Path | Checked | Remark]]:
    """The folder that a pattern names, below which it is compared with names; the files, and those in the folders, that
    match; and what could not be looked into."""
    start, parts = parts_of(pattern)
    paths, deep, shut = reached(start, parts)
    if pattern.startswith(DEEP):  # it stands for what this folder holds and does not hide
        paths = [path for path in paths if path != start]
    found = launch_files([path for path in paths if not TOOLS.intersection(path.parts)], start, deep)
    if not found and not any(isinstance(each, Checked) for each in shut):
        found = [Checked(pattern, None, f"no file matches {pattern}")]
    return start, [*dict.fromkeys([*found, *shut])]


def parts_of(pattern: str) -> tuple[Path, list[str]]:
    """The folder that a pattern names, and what follows from the first part on that is compared with names."""
    parts: list[str] = []
    while PATTERN.search(pattern):
        pattern, part = os.path.split(pattern)  # a Path drops what ends with a slash
        parts.insert(0, part)
    return Path(pattern), parts


def reached(start: Path, parts: Sequence[str]) -> tuple[list[Path], list[Path], list[Checked | Remark]]:
    """What all the parts lead to from ``start``, a folder before those below it; the folders that ``**`` looked
    through; and those on the way that may not be looked into, which is nothing to a shell.

    A link is followed that a part is compared with, and none that ``**`` would pass: of those that lead elsewhere it is
    said.
    """
    here = [start]
    compared: set[Path] = set()
    deep: list[Path] = []
    links: list[Path] = []
    shut: list[Checked | Remark] = []
    for part in parts:
        there: dict[Path, None] = {}
        for folder in (path for path in here if is_folder(path) or barred(path)):
            if part != DEEP:
                try:
                    look_into(folder, part)
                except OSError as error:
                    shut += unseen(folder, error, start)
                there.update(dict.fromkeys(members(folder, part)))
            elif folder not in there:  # below one that came before
                seen = below(folder, start, hidden=False)
                there.update(dict.fromkeys([*seen.folders, *seen.files]))
                deep.append(folder)
                links += seen.links
                shut += seen.said
        if part != DEEP:
            compared.update(there)
        here = sorted(there, key=str)
    return here, deep, [*shut, *elsewhere((link for link in links if link not in compared), deep, start)]


def look_into(folder: Path, part: str) -> None:
    """Raise OSError for a folder that may not be looked into. Only where names in it are compared it must be listed:
    what is named is opened in any that lets one pass."""
    pass_through(folder)
    if PATTERN.search(part):
        os.scandir(folder).close()


def members(folder: Path, part: str) -> Iterator[Path]:
    """What in a folder has a name, or one like it; the folder itself where a slash ends the pattern."""
    import glob

    for name in glob.glob(part, root_dir=folder) if part else [""]:  # noqa: PTH207 - a Path finds hidden names too
        yield Path(folder, name)
