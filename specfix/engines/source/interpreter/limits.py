"""What a source may cost: nodes, time, calls inside calls, and the size of what Python's own operators make."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from typing import Any

from specfix.engines.source.interpreter.standins import Outside, UndecidedError

BUDGET = 20_000_000  # nodes
SECONDS = 30  # of this process's own time; a release takes two or three
MAX_DEPTH = 60  # calls inside calls
MAX_BITS = 1 << 12  # of a number that is computed with
MAX_SIZE = 1 << 20  # of what Python's own functions and operators are asked to make
WIDE = re.compile(r"%[^a-zA-Z%]*(\d{4}|\*)")


class Budget:
    """What is left for one source tree."""

    def __init__(self) -> None:
        self._nodes = BUDGET
        self._ends = time.process_time() + SECONDS

    def spend(self) -> None:
        """Count one node. UndecidedError once all are spent or the time is up, and from then on."""
        self._nodes -= 1
        if self._nodes < 0 or (self._nodes % 1024 == 0 and time.process_time() > self._ends):
            self._nodes = -1
            raise UndecidedError("it takes too long")

    def each(self, values: Any) -> Iterator[Any]:
        """Go through ``values``, each of which counts."""
        if isinstance(values, Outside):
            raise UndecidedError(f"{values.path} is gone through")
        for value in values:
            self.spend()
            yield value


def refuse_large(op: ast.operator, left: Any, right: Any) -> None:
    """UndecidedError where an operator might make something large of its two sides."""
    if isinstance(left, int) and isinstance(right, int) and max(left.bit_length(), right.bit_length()) > MAX_BITS:
        raise UndecidedError("too large")
    if isinstance(op, ast.Mod) and isinstance(left, str | bytes) and WIDE.search(str(left)):
        raise UndecidedError("a text of a given width")
    if isinstance(op, ast.Pow | ast.LShift) and not (abs(left) < MAX_SIZE and abs(right) <= 64):
        raise UndecidedError("too large")
    if isinstance(op, ast.Mult | ast.Add) and _size(left, op, right) > MAX_SIZE:
        raise UndecidedError("too large")


def _size(left: Any, op: ast.operator, right: Any) -> int:
    """Of what ``+`` or ``*`` would make of a text or list; 0 of numbers."""
    sizes = [len(side) if isinstance(side, str | bytes | list | tuple) else None for side in (left, right)]
    if sizes == [None, None]:
        return 0
    counts = [size if size is not None else abs(side) for size, side in zip(sizes, (left, right), strict=True)]
    return int(counts[0] + counts[1] if isinstance(op, ast.Add) else counts[0] * counts[1])
