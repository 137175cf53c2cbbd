"""Ctrl-C and its like wait while a file or a folder is half made, so that whoever makes it can take it back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, NoReturn

Acting = Callable[[], AbstractContextManager[None]]

USUAL: dict[int, Callable[[int, FrameType | None], Any] | signal.Handlers] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}


@contextmanager
def waiting() -> Iterator[Acting]:
    """The signals that end a process are exceptions (KeyboardInterrupt, SystemExit), raised within what this yields,
    else at its end. Only the first counts: what it breaks off is then cleaned up in peace. A program that has its own
    way with a signal keeps it, and so does any thread but the main one, which no signal breaks off."""
    came: list[int] = []
    now = False

    def come(number: int, _: object) -> None:
        nonlocal now
        came.append(number)
        if now:
            now = False
            end(number)

    @contextmanager
    def acting() -> Iterator[None]:
        nonlocal now
        now = True
        try:
            if came:
                end(came[0])
            yield
        finally:
            now = False

    ours = []
    if threading.current_thread() is threading.main_thread():  # no other may set a handler
        ours = [number for number, usual in USUAL.items() if signal.getsignal(number) == usual]
    try:
        for number in ours:
            signal.signal(number, come)
        yield acting
    finally:
        for number in ours:
            signal.signal(number, USUAL[number])
        if came:
            end(came[0])


def end(number: int) -> NoReturn:
    """What Python itself makes of Ctrl-C; of the others, the status that a shell gives to a process that they end."""
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
