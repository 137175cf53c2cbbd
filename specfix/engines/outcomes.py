"""What was decided is kept for the same values: these recur from one deployment to the next.

Several threads may look and keep at a time: each looks once, since another may clear what is kept right after.
"""

from __future__ import annotations

from collections.abc import Callable
from marshal import dumps
from typing import Any, Final, TypeVar

T = TypeVar("T")

MOST: Final = 1024  # outcomes that are kept of one release
LONGEST: Final = 8192  # bytes of the values that one is kept for
PLAIN: Final = 2  # the format of marshal that writes equal values alike
UNKNOWN: Final[Any] = object()  # what is not kept; None may be


def written(values: Any) -> bytes | None:
    """``values`` as a key: the same for the very same ones alone, 1 and True being two. None for what is no plain data,
    and for what is large."""
    try:
        key = dumps(values, PLAIN)
    except ValueError:
        return None
    return key if len(key) <= LONGEST else None


class Outcomes:
    """Outcomes by all that they were computed of. They are shared, and nobody may change one."""

    def __init__(self) -> None:
        self._kept: dict[bytes | None, Any] = {}

    def recall(self, values: Any, decide: Callable[[], T]) -> T:
        """What ``decide`` returns, which hangs on ``values`` alone: as it did before where there is a key of them."""
        key = written(values)
        kept: T = self._kept.get(key, UNKNOWN)
        if kept is not UNKNOWN:
            return kept
        outcome = decide()
        if key is not None:
            if len(self._kept) >= MOST:
                self._kept.clear()
            self._kept[key] = outcome
        return outcome
