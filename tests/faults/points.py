"""Every point of a run at which the disk is changed, and something that happens at one of them.

A run is a process of its own, forked from this one, which has specfix imported already. Its points are what Python does
to files below a folder, each before it happens: so what it leaves is what the one before left behind, whole. Where an
operation has a middle (a file half written) or an end of its own (a rename, a sync), that is one more point.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from specfix import interrupts
from specfix.cli import main
from specfix.repair import output

EVENTS = frozenset(
    [
        "os.link",
        "os.mkdir",
        "os.rename",
        "os.symlink",
        "os.remove",
        "os.rmdir",
        "os.chmod",
        "os.utime",
        "os.truncate",
        "shutil.copyfile",
    ]
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

LINES = {output.__file__, interrupts.__file__, contextlib.__file__}  # whose lines count: what makes and takes away

Strike = Callable[[str, str], None]
"""What happens there: is told the operation and the path."""


@dataclass
class Points:
    """Counts what is done below ``root``, and strikes at the ``step``-th point, or at all from there on."""

    root: Path
    step: int
    strike: Strike
    lasting: bool = False
    names: list[str] = field(default_factory=list)

    def reach(self, what: str, path: str) -> None:
        self.names.append(what)
        if len(self.names) == self.step or (self.lasting and len(self.names) > self.step):
            self.strike(what, path)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS:
            for path in filter(None, map(named, arguments)):
                if path.startswith(f"{self.root}{os.sep}") or not path.startswith(os.sep):
                    return self.reach(event, path)
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
            opened = named(arguments[0])
            if opened and opened.startswith(f"{self.root}{os.sep}"):
                self.reach(event, opened)
        return None

    def install(self) -> None:
        """From now on, in this process: there is no way back."""
        renamed = Path.rename

        def rename(path: Path, target: Path) -> Path:
            moved = renamed(path, target)
            self.reach("renamed", str(target))
            return moved

        def fsync(handle: int) -> None:  # not a real one: it changes nothing of what a killed process leaves
            path = Path(f"/proc/self/fd/{handle}").readlink()
            self.reach("fsync", str(path))
            self.reach("fsynced", str(path))

        def write_bytes(path: Path, data: bytes) -> int:
            with path.open("wb", buffering=0) as file:
                file.write(data[: len(data) // 2])
                self.reach("half", str(path))
                file.write(data[len(data) // 2 :])
            return len(data)

        for owner, name, ours in ((Path, "rename", rename), (Path, "write_bytes", write_bytes), (os, "fsync", fsync)):
            setattr(owner, name, ours)
        sys.addaudithook(self.hook)


def named(argument: object) -> str | None:
    return os.fsdecode(argument) if isinstance(argument, str | bytes | os.PathLike) else None


@dataclass(frozen=True)
class Ended:
    """How a run ended: ``status`` is its exit status, or the negative number of the signal that killed it."""

    status: int
    said: str
    names: list[str]


def run(arguments: list[str], points: Points, folder: Path) -> Ended:
    """Run ``specfix`` with these arguments in a process of its own; ``folder`` is for what it says."""
    return ended(start(arguments, points, folder), folder)


def start(arguments: list[str], points: Points, folder: Path) -> int:
    """Start it; returns the process."""
    child = fork()
    if child:
        return child
    try:
        handle = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        points.install()
        status = ending(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        (folder / "names").write_text("\n".join(points.names))
        os._exit(status)
    finally:
        os._exit(99)


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of other tests' threads, which this one does not use
        return os.fork()


def at_line(writes: Callable[[], object], step: int, number: int) -> int:
    """Do it in a process of its own, which gets this signal before the ``step``-th line; returns the exit status, 0
    where it was done in fewer."""
    lines = 0

    def line(_: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal lines
        lines += event == "line"
        if event == "line" and lines == step:
            os.kill(os.getpid(), number)
        return line

    def call(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        return line if file in LINES and (lines or file == interrupts.__file__) else None

    child = fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os.fsync = lambda fd: None  # it takes its time, and changes nothing here
        sys.settrace(call)
        writes()
        os._exit(0)
    except KeyboardInterrupt:
        os._exit(130)
    except SystemExit as left:
        os._exit(left.code if isinstance(left.code, int) else 1)
    finally:
        os._exit(99)


def ended(child: int, folder: Path) -> Ended:
    """Wait for it."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said, names = folder / "said", folder / "names"
    return Ended(status, said.read_text(), names.read_text().split("\n") if status >= 0 and names.exists() else [])


def ending(arguments: list[str]) -> int:
    """The exit status, also where it comes as an exception."""
    try:
        return main(arguments)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else 1


def tree(folder: Path) -> dict[str, tuple[object, ...]] | None:
    """All that is below a folder: a link's goal, a file's mode and content; None where there is no folder."""
    if not folder.exists():
        return None
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = ("link", path.readlink())
        elif path.is_dir():
            found[name] = ("folder",)
        else:
            found[name] = ("file", path.stat().st_mode, path.read_bytes())
    return found
