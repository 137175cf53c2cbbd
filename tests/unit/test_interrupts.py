"""When a signal breaks off what it interrupts, and when it waits."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from specfix.errors import CannotCheck
from specfix.interrupts import USUAL, waiting

ENDS = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)]


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """The usual handlers, whatever started these tests; and each must be there again."""
    before = {number: signal.signal(number, handler) for number, handler in USUAL.items()}
    yield
    assert {number: signal.signal(number, handler) for number, handler in before.items()} == USUAL


def send(*numbers: int) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)


@pytest.mark.parametrize(("number", "raised"), ENDS)
def test_waits_but_where_it_may_act(number: signal.Signals, raised: type[BaseException]) -> None:
    done = []
    with pytest.raises(raised) as ended:  # noqa: SIM117
        with waiting() as acting:
            done.append("made")
            with acting():
                send(number)
                done.append("filled")
    assert done == ["made"]
    assert raised is KeyboardInterrupt or ended.value.args == (128 + number,)


@pytest.mark.parametrize(("number", "raised"), ENDS)
def test_one_that_waits_is_raised_where_it_next_may(number: signal.Signals, raised: type[BaseException]) -> None:
    done = []
    with pytest.raises(raised):  # noqa: SIM117
        with waiting() as acting:
            send(number)
            done.append("made")
            with acting():
                done.append("filled")
    assert done == ["made"]


@pytest.mark.parametrize(("number", "raised"), ENDS)
def test_one_that_waits_is_raised_at_the_end(number: signal.Signals, raised: type[BaseException]) -> None:
    done = []
    with pytest.raises(raised), waiting():
        send(number)
        done.append("made")
    assert done == ["made"]
    with pytest.raises(raised), waiting():
        send(number)
        raise CannotCheck("a program that goes on after this was still told to end")


def test_no_second_one_disturbs_the_cleaning() -> None:
    cleaned = []
    with pytest.raises(KeyboardInterrupt), waiting() as acting:
        try:
            with acting():
                send(signal.SIGINT)
        finally:
            send(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            cleaned.append("all")
    assert cleaned == ["all"]


def test_a_program_keeps_its_own_way() -> None:
    came = []
    signal.signal(signal.SIGTERM, lambda *_: came.append("its own"))
    with waiting() as acting, acting():
        send(signal.SIGTERM)
    assert came == ["its own"]
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_another_thread_sets_no_handler() -> None:
    found = []

    def work() -> None:
        with waiting() as acting, acting():
            found.append({number: signal.getsignal(number) for number in USUAL})

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [USUAL]
