"""A pair and a launch file on disk, and the ways in which ``specfix fix`` is run on them."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specfix.cli import main
from specfix.repairing import Fixed, prepare, prepare_launch, write
from tests.unit.repair.pairs import OPTIONS, write_pair

from .points import Ended, Points, Strike, at_line, run, tree

SCRIPT = """\
#!/bin/sh
exec vllm serve {target} --max-model-len {length} \\
  --speculative-config '{{"method": "eagle3", "model": "{draft}", "num_speculative_tokens": 5}}'  # ours
"""
LEFTOVERS = {".out.specfix-new", ".out.specfix-old"}


class Place:
    """``models`` are never written to; ``work`` holds the output folder and nothing else; ``beside`` is the test's.
    ``form`` is what is repaired, ``folder`` or ``launch``, with more ``options`` of fix()."""

    def __init__(self, root: Path, form: str = "folder", **options: Any) -> None:
        self.models, self.work, self.beside = (root / name for name in ("models", "work", "beside"))
        self.out = self.work / "out"
        self.form = form
        self.copy = {"copy": options.pop("copy", False)}
        self.options = {**OPTIONS, **options}
        self.target, self.draft = write_pair(self.models)
        self.work.mkdir()
        self.beside.mkdir()

    def given(self, length: int) -> dict[str, Any]:
        """The options, with this length, which a launch file states itself."""
        if self.form == "folder":
            return self.options | {"max_model_len": length}
        text = SCRIPT.format(target=self.target, draft=self.draft, length=length)
        (self.models / "run.sh").write_text(text)
        return {name: self.options[name] for name in ("engine", "hardware")}

    def arguments(self, length: int = 8192) -> list[str]:
        """The command line that fixes the pair, or the launch file, for this length."""
        options = [word for name, value in {**self.given(length), **self.copy}.items() for word in words(name, value)]
        what = [str(self.target), str(self.draft)] if self.form == "folder" else ["--launch", f"{self.models}/run.sh"]
        return ["fix", *what, *options, "--out", str(self.out)]

    def planned(self, length: int = 8192) -> Fixed:
        """The same, ready to be written."""
        given = self.given(length)
        if self.form == "folder":
            return prepare(self.target, self.draft, out=self.out, **given)
        return prepare_launch(self.models / "run.sh", out=self.out, **given)

    def forked(
        self, arguments: list[str], step: int = 0, strike: Strike = lambda *_: None, lasting: bool = False
    ) -> Ended:
        """A run in a process of its own; something happens at its ``step``-th point."""
        return run(arguments, Points(self.work, step, strike, lasting), self.beside)

    def struck(self, planned: Fixed, step: int, number: int) -> int:
        """Write it in a process of its own, which has this signal at the ``step``-th line; returns its exit status."""
        return at_line(lambda: write(planned, **self.copy), step, number)

    def names(self) -> set[str]:
        """What stands beside one another in the folder that holds the output."""
        return {path.name for path in self.work.iterdir()}


def words(name: str, value: object) -> Iterator[str]:
    """An option of fix() on the command line."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, dict):
        yield from (f"{flag}={key}={text}" for key, text in value.items())
    elif isinstance(value, bool):
        yield from [flag] if value else []
    else:
        yield f"{flag}={value}"


@dataclass
class Known:
    """A place with its results: ``old`` is there before each run, unless it is None, and ``new`` is what is asked."""

    place: Place
    old: dict[str, tuple[object, ...]] | None
    arguments: list[str]
    new: dict[str, tuple[object, ...]] | None
    planned: Fixed
    models: dict[str, tuple[object, ...]]

    @classmethod
    def make(cls, root: Path, form: str, older: bool, **options: Any) -> Known:
        place = Place(root, form, **options)
        old = None
        if older:
            assert here(place.arguments(4096)) == 0
            old = tree(place.out)
            place.out.rename(place.beside / "older")
        arguments = place.arguments()
        assert here(arguments) == 0
        known = cls(place, old, arguments, tree(place.out), place.planned(), lasting(place.models))
        assert known.old != known.new is not None
        return known

    def reset(self) -> None:
        """The folder as it is before a run."""
        shutil.rmtree(self.place.work)
        self.place.work.mkdir()
        if self.old is not None:
            shutil.copytree(self.place.beside / "older", self.place.out, symlinks=True)

    def hold(self) -> bool | None:
        """What must be so whatever happened; whether the new result is there, None where there is none at all."""
        assert lasting(self.place.models) == self.models
        there = tree(self.place.out)
        assert there in (None, self.old, self.new)
        assert self.place.names() <= {"out", *LEFTOVERS}
        if there is None and self.old is not None:
            assert tree(self.place.work / ".out.specfix-old") == self.old
        return None if there is None else there == self.new

    def run_again(self) -> None:
        """The next run is not disturbed, and takes away what was left."""
        write(self.planned, **self.place.copy)
        assert tree(self.place.out) == self.new
        assert self.place.names() == {"out"}
        assert lasting(self.place.models) == self.models


def here(arguments: list[str]) -> int:
    """Run in this process: what is read once is then known to those that are forked."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return main(arguments)


def lasting(folder: Path) -> dict[str, tuple[object, ...]]:
    """All of a folder that reading it does not change, links themselves included."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = os.lstat(path)
        content: object = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path)] = (status.st_ino, status.st_mode, status.st_nlink, status.st_mtime_ns, content)
    return found
