"""Which releases of a test run before every change lands: `pytest -m "engine and not thorough"`.

Each family of faults is met there on the newest release and on one that has it another way. `pytest -m engine` runs
all.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def releases(all_of_them: Iterable[str], *always: str) -> list[object]:
    """The releases as parameters of a test, all but ``always`` marked as thorough."""
    every = list(all_of_them)
    assert set(always) <= set(every), f"{always} of {every}"
    return [pytest.param(each, marks=() if each in always else pytest.mark.thorough, id=each) for each in every]
