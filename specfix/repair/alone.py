"""Writing undisturbed: one writer at a time, and signals that leave no half behind."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specfix.errors import CannotCheck

ENDING = (signal.SIGTERM, signal.SIGHUP)  # Ctrl-C is an exception already


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


@contextmanager
def terminable() -> Iterator[None]:
    """The signals that end a process as exceptions; not where a program has its own way with them."""
    ours = []
    if threading.current_thread() is threading.main_thread():  # no other may set a handler
        ours = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]

    def stop(number: int, _: object) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)  # what is being cleaned up is not left half clean
        raise SystemExit(128 + number)

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
