"""Python's comparisons, by the words that conditions and derived values call them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda part, whole: part in whole,
    "not in": lambda part, whole: part not in whole,
    "is": operator.is_,
    "is not": operator.is_not,
}
