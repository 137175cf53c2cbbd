"""A file of the user's own, whole or as it was; and what to say where the disk refuses."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from specfix.errors import CannotCheck

START = 1_000  # bytes of a file, in which its mark stands

FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota of the disk is used up"}


def working_directory() -> Path:
    """Where this was started. Raises CannotCheck where that is gone."""
    try:
        return Path.cwd()
    except OSError as error:
        raise CannotCheck(f"the working directory is gone ({error.strerror}): go to one that is there") from None


def write_whole(path: Path, text: str, mark: str) -> None:
    """Put ``text`` into the file, new or one of the same kind, which holds the ``mark``; a link is followed. Raises
    CannotCheck for any other that is there and where writing fails, and then nothing of the text is left."""
    from specfix.interrupts import waiting  # a check writes no file

    if not path.name:
        raise CannotCheck(f"{str(path)!r} is no name of a file to write")
    path = path.resolve() if path.is_symlink() else path
    refuse_another(path, mark)
    beside = path.with_name(f".{path.name}.{os.getpid()}")  # of another run's own, where that writes the same file
    with waiting() as acting:
        try:
            with acting():
                beside.write_text(text, "utf-8")
                beside.replace(path)
        except BaseException as error:  # an interrupt too
            with suppress(OSError):
                beside.unlink()
            if isinstance(error, OSError):
                raise unwritable(path, error) from None
            raise


def refuse_another(path: Path, mark: str) -> None:
    """Raise CannotCheck for a file of another kind: a device, a pipe, a model's config."""
    try:
        if not path.exists():
            return
        if not path.is_file():
            raise CannotCheck(f"{path} is no regular file: choose another place")
        with path.open("rb") as file:
            held = file.read(START)
    except OSError as error:
        raise unwritable(path, error) from None
    if held and mark.encode() not in held:
        raise CannotCheck(f"{path} is another file, and is left as it is: choose another place")


def unwritable(path: Path, error: OSError, left: str | None = None) -> CannotCheck:
    """What the system says, in words that name the place; ``left`` is what is still there."""
    what = "free some space, or choose another place" if error.errno in FULL else "choose another place"
    return CannotCheck(f"{path} cannot be written: {reason(path, error)}: {what}{f'; {left}' if left else ''}")


def reason(path: Path, error: OSError) -> str:
    """The system's own reason, with the file that it is about where that is another."""
    why = FULL.get(error.errno or 0) or error.strerror or str(error)
    return why + (f" ({error.filename})" if error.filename and str(error.filename) != str(path) else "")
