"""Facts read on the spot, kept in the user's cache folder.

A cache is never an error: a damaged entry is made again, and where nothing can be written nothing is.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from specfix.engines.engine import Engine
from specfix.engines.readers import read_engine
from specfix.engines.serial import dump, load


def read_cached(package: Path, source: str, version: str | None = None) -> Engine:
    """:func:`read_engine`, or what it said of the very same files before."""
    entry = f"{_stamp(package, version)}.json"
    with suppress(OSError, RuntimeError, ValueError):
        return load((_folder() / entry).read_text("utf-8"), source)
    engine = read_engine(package, source, version)
    with suppress(OSError, RuntimeError):
        _write(_folder() / entry, dump(engine))
    return engine


def _folder() -> Path:
    """RuntimeError where the user has no home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # the specification has a relative path ignored
    root = Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()
    return root / "specfix" / "facts"


def _stamp(package: Path, version: str | None) -> str:
    """Of path, size and time of each Python file, of the engine and of its readers.

    Not of the distribution's RECORD: that stays as it was when someone patches a file in site-packages.
    """
    digest = hashlib.sha256(repr(version).encode())
    for root in (package, Path(__file__).parent):
        for folder, below, files in os.walk(root):
            below.sort()
            for name in sorted(files):
                if name.endswith(".py"):
                    path = os.path.join(folder, name)  # noqa: PTH118 - thousands of files on each start
                    with suppress(OSError):  # a link to nowhere
                        status = os.stat(path)  # noqa: PTH116
                        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode("utf-8", "replace"))
    return digest.hexdigest()[:32]


def _write(file: Path, text: str) -> None:
    """All of it or nothing: another process may be reading or writing the same entry."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
