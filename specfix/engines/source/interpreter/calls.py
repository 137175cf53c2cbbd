"""Calls that the source makes, and Python's own functions that call others: what they call gets past no check."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Hashable
from functools import partial
from typing import Any

from specfix.engines.source.interpreter.access import may_be_asked_for
from specfix.engines.source.interpreter.attributes import get_attribute, has_attribute, set_attribute
from specfix.engines.source.interpreter.functions import Function
from specfix.engines.source.interpreter.limits import MAX_SIZE, Budget
from specfix.engines.source.interpreter.names import MUTATORS
from specfix.engines.source.interpreter.operators import of_two
from specfix.engines.source.interpreter.source_classes import SourceClass, is_foreign
from specfix.engines.source.interpreter.standins import BUILTINS, UndecidedError, Unknown

# what asks for the value of its argument
OF_VALUES = frozenset({abs, all, any, bool, float, int, iter, len, list, max, min, repr, round, set, sorted, str, sum})


class Calls:
    """``builtins`` are the names of Python's own that every module of the source has."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        of_values = {
            "sorted": self._sorted,
            "min": partial(self._extreme, min),
            "max": partial(self._extreme, max),
            "iter": lambda values: iter(list(budget.each(values))),
            "sum": self._sum,
        }
        self._of_values = OF_VALUES | set(of_values.values())
        self.builtins: dict[str, Any] = BUILTINS | {
            "getattr": get_attribute,
            "hasattr": has_attribute,
            "setattr": set_attribute,
            "map": self._map,
            "filter": self._filter,
            **of_values,
        }

    def apply(self, function: Any, given: list[Any], named: dict[str, Any]) -> Any:
        """What a call gives; unknown where the function would decide by what is unknown."""
        if is_foreign(function):
            return function(*given, **named)
        foreign = next((value for value in given if is_foreign(value)), None)
        if foreign is not None and isinstance(function, Hashable) and function in self._of_values:
            return Unknown(f"{foreign.path} is not in this source")
        if function is type:
            return _type(*given)
        registers = isinstance(getattr(function, "__self__", None), argparse._ActionsContainer)
        unread = named.get("type")
        if registers and isinstance(unread, Unknown):
            named["type"] = lambda _: unread  # argparse would look it up in a table
        makes = function is range or isinstance(getattr(function, "__self__", None), str | bytes | list)
        if makes and any(isinstance(value, int) and abs(value) > MAX_SIZE for value in given):
            raise UndecidedError("too large")
        try:
            return function(*given, **named)
        except (TypeError, ValueError):
            unread = next((value for value in given if isinstance(value, Unknown)), None)
            if unread is None:
                raise
            return unread
        except UndecidedError as error:
            own = getattr(function, "__func__", function)
            if registers or isinstance(own, Function) or getattr(own, "__name__", "") in MUTATORS:
                raise
            return Unknown(str(error))

    def _map(self, function: Any, *values: Any) -> list[Any]:
        rows = zip(*(self._budget.each(each) for each in values), strict=False)
        return [self.apply(function, list(row), {}) for row in rows]

    def _filter(self, function: Any, values: Any) -> list[Any]:
        return [v for v in self._budget.each(values) if (v if function is None else self.apply(function, [v], {}))]

    def _sorted(self, values: Any, *, key: Any = None, reverse: bool = False) -> list[Any]:
        return sorted(self._budget.each(values), key=self._key(key), reverse=reverse)

    def _extreme(self, of: Any, *values: Any, key: Any = None, **default: Any) -> Any:
        among = list(self._budget.each(values[0])) if len(values) == 1 else values
        return of(among, key=self._key(key), **default)

    def _key(self, function: Any) -> Any:
        return None if function is None else lambda value: self.apply(function, [value], {})

    def _sum(self, values: Any, start: Any = 0) -> Any:
        for value in self._budget.each(values):
            start = of_two(ast.Add(), start, value)
        return start


def _type(*given: Any) -> Any:
    """``type(value)``. Nobody makes a class by it, or gets at one that is this interpreter's own."""
    kind = type(given[0]) if len(given) == 1 else None
    if isinstance(kind, SourceClass) or (kind is not None and may_be_asked_for(kind)):
        return kind
    raise UndecidedError("type() of something else than a value")
