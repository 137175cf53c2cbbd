"""A file of the user's own, whole or as it was; and what to say where the disk refuses."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from specfix.errors import CannotCheck

FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota of the disk is used up"}


def write_whole(path: Path, text: str) -> None:
    """Put ``text`` into the file. Raises CannotCheck where that fails, and then nothing of it is left."""
    if not path.name:
        raise CannotCheck(f"{str(path)!r} is no name of a file to write")
    beside = path.with_name(f".{path.name}.{os.getpid()}")  # of another run's own, where that writes the same file
    try:
        beside.write_text(text, "utf-8")
        beside.replace(path)
    except BaseException as error:  # an interrupt too
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError):
            raise unwritable(path, error) from None
        raise


def unwritable(path: Path, error: OSError, left: str | None = None) -> CannotCheck:
    """What the system says, in words that name the place; ``left`` is what is still there."""
    what = "free some space, or choose another place" if error.errno in FULL else "choose another place"
    return CannotCheck(f"{path} cannot be written: {reason(path, error)}: {what}{f'; {left}' if left else ''}")


def reason(path: Path, error: OSError) -> str:
    """The system's own reason, with the file that it is about where that is another."""
    why = FULL.get(error.errno or 0) or error.strerror or str(error)
    return why + (f" ({error.filename})" if error.filename and str(error.filename) != str(path) else "")
