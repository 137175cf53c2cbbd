"""Writing undisturbed: one writer at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specfix.errors import CannotCheck


@contextmanager
def locked(parent: Path) -> Iterator[bool]:
    """One writer at a time in ``parent``; the lock goes with the process. False where the file system has no locks.
    Raises CannotCheck where the folder cannot be opened."""
    try:
        handle = os.open(parent, os.O_RDONLY)
    except OSError as error:
        raise CannotCheck(f"{parent} cannot be opened: {error.strerror}: choose another place") from None
    try:
        alone = True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            alone = False
        yield alone
    finally:
        os.close(handle)
