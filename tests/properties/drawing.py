"""Choices out of which anything is made: hypothesis draws them, or they are taken from the bytes of a fuzzer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st

T = TypeVar("T")
Choose = Callable[[int], int]
"""A number from 0 to below the one that is given. 0 is the simplest choice."""


def one(choose: Choose, several: Sequence[T]) -> T:
    """One of several, the first of which is the simplest."""
    return several[choose(len(several))]


def from_bytes(data: bytes) -> Choose:
    """Choices that the bytes hold; where they end, each is the simplest."""
    left: Iterator[int] = iter(data)

    def choose(below: int) -> int:
        number, reach = 0, 1
        while reach < below:
            number, reach = number * 256 + next(left, 0), reach * 256
        return number % below

    return choose


@st.composite
def made(draw: st.DrawFn, make: Callable[[Choose], T]) -> T:
    """What ``make`` makes of choices that hypothesis draws."""
    return make(lambda below: draw(st.integers(0, below - 1)))


def examples(times: int) -> settings:
    """How many examples a test has: so many times what the profile says."""
    loaded = settings.default
    assert loaded is not None
    return settings(max_examples=times * loaded.max_examples)
