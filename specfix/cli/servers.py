"""The servers that files start: each given by its name, in a folder, or by a pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from specfix.checker.report import Checked, Remark, without_name
from specfix.cli.access import is_folder
from specfix.cli.folders import SUFFIXES, launch_files, of_tools
from specfix.cli.patterns import PATTERN, matching
from specfix.errors import CannotCheck
from specfix.launch.manifests import MENTION, Found, NoLaunch, launches_in
from specfix.launch.yaml_file import Unreadable, read_content, text_of

SCRIPTS = (".bash", "")  # what else a script is called that is given by its own name
SPECULATION = re.compile(r"speculative[-_](config|model|tokens)|spec-(method|model|tokens)|num_speculative_tokens")


def all_launches(files: Sequence[str], named: bool = True) -> Iterator[Found | Checked | Remark]:
    """The servers of each file, and of the files in each folder, or why a file or folder could not be read. One that
    starts none is told of where it is ``named``, as a launch; of others that speak of speculation there is a remark."""
    for name in files:
        if not name:
            raise CannotCheck("the name of a file is empty: give one, or a folder")
        path, below = Path(name), None
        several: Sequence[Path | Checked | Remark] = [path]
        if not os.path.lexists(path) and PATTERN.search(name):
            below, several = matching(name)
        elif is_folder(path):
            below = path
            several = launch_files([path], path)
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
