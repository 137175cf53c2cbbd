"""Facts read on the spot, kept in the user's cache folder by the contents that they were read of.

A cache is never an error: a damaged entry is made again, and where nothing can be written nothing is.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from specfix.engines.apart import read_engine
from specfix.engines.engine import Engine
from specfix.engines.readers.requirements import FILES
from specfix.engines.serial import dump, load
from specfix.engines.source.tree import MAX_FILE

STATING = ("pyproject.toml", *FILES)  # of a source tree
ENTRIES = 64  # files in the folder, two for an engine; with more the oldest go
SETTLING = 2_000_000_000  # ns after a change in which another one need not show in the file's times


def read_cached(package: Path, source: str, version: str | None = None) -> Engine:
    """:func:`read_engine`, or what it said of the very same contents before, wherever they stood."""
    return cached(contents(package), source, version, lambda: read_engine(package, source, version))


def cached(held: str, source: str, version: str | None, read: Callable[[], Engine]) -> Engine:
    """What ``read`` says of an engine that holds ``held``, or said before."""
    readers = _contents(_python_files(Path(__file__).parent))
    name = f"{_digest(repr((held, version, readers)))}.facts"
    if text := _get(name):
        with suppress(ValueError):
            return load(text, source)
    engine = read()
    _put(name, dump(engine))
    return engine


def contents(package: Path) -> str:
    """A digest of all that is read of an engine: the Python files of the package, and what states its requirements.

    The distribution's RECORD would not do: it stays as it was when someone patches a file in site-packages.
    """
    root = package.parent
    beside = [root / file for file in STATING] + sorted(root.glob("vllm*.dist-info/METADATA"))
    beside += [file.with_name("RECORD") for file in beside if file.name == "METADATA"]  # says whose the package is
    return _contents(_python_files(package) | {f"../{file.relative_to(root)}": str(file) for file in beside})


def _python_files(root: Path) -> dict[str, str]:
    """Name to path; the names are the same wherever the root stands."""
    found = {}
    top = str(root)
    for folder, below, files in os.walk(top):
        below.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                path = f"{folder}{os.sep}{name}"
                found[path[len(top) :]] = path
    return found


def _contents(files: dict[str, str]) -> str:
    """A digest of names and contents.

    To read the 2900 files of a release takes a quarter of a second, and much longer from a slow disk. So it is kept
    under each file's path, size, inode and times, and taken from there as long as these are the same.
    """
    states = {path: state for path in files.values() if (state := _state(path))}
    stamps = [(path, at.st_size, at.st_ino, at.st_mtime_ns, at.st_ctime_ns) for path, at in states.items()]
    name = f"{_digest(repr(stamps))}.contents"
    if known := _get(name):
        return known
    now = time.time_ns()
    digest = hashlib.sha256()
    for called, path in files.items():
        state, data = states.get(path), None
        if state and stat.S_ISREG(state.st_mode) and state.st_size <= MAX_FILE:  # as the readers do
            with suppress(OSError):
                data = Path(path).read_bytes()
        digest.update(repr((called, None if data is None else len(data))).encode())
        digest.update(data or b"")
    found = digest.hexdigest()
    if all(max(at.st_mtime_ns, at.st_ctime_ns) < now - SETTLING for at in states.values()):
        _put(name, found)
    return found


def _state(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - thousands of files on each start
    except OSError:  # a link to nowhere
        return None


def _folder() -> Path:
    """RuntimeError where the user has no home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # the specification has a relative path ignored
    root = Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()
    return root / "specfix" / "facts"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _get(name: str) -> str | None:
    """The text of an entry; None where there is none, or not as it was written."""
    with suppress(OSError, RuntimeError, ValueError):
        file = _folder() / name
        digest, _, text = file.read_text("utf-8").partition("\n")
        if digest == _digest(text):
            with suppress(OSError):
                os.utime(file)  # used: the oldest go first
            return text
    return None


def _put(name: str, text: str) -> None:
    """All of it or nothing: another process may be reading or writing the same entry."""
    with suppress(OSError, RuntimeError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(f"{_digest(text)}\n{text}")
            Path(temporary).replace(folder / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        for old in sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)[ENTRIES:]:
            with suppress(OSError):
                old.unlink()
