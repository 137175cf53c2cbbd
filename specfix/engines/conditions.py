"""Conditions lifted from an engine's source, decided in three-valued logic: what is not known stays unknown.

A condition is data (see ``facts.Condition``), a nested list in prefix form:

    ["const", value]                     a literal; sets are sorted lists
    ["name", "speculative_config.method"]    the source's dotted name, "self." dropped; a call ends in "()"
    ["and", c, ...] ["or", c, ...] ["not", c] ["if", test, then, otherwise]
    ["%", a, b]                          the remainder
    ["==", a, b], and so on with != < <= > >= in "not in" is "is not"
    ["len", a] ["any", list, c] ["all", list, c] ["count", list, c]    where ["name", "item"] is the element
    ["list", a, ...]
    ["?", "why this part could not be lifted"]
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any, Final

from specfix.engines.comparisons import COMPARISONS
from specfix.engines.facts.decisions import Condition, Step
from specfix.record import record

ITEM: Final = "item"


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


_UNKNOWN: Final = _Unknown()
_EXISTS: Final = object()  # an object of which only attributes are known: true, and not None

_COMPARE: Final = {**COMPARISONS, "%": operator.mod}


def evaluate(condition: Condition, values: Mapping[str, object], missing: set[str] | None = None) -> bool | None:
    """Whether ``condition`` holds, or None where that hangs on something unknown, added to ``missing``.

    ``values`` holds what is known by dotted name. Where an attribute is known (``a.b``), ``a`` is not None.
    """
    return _truth(condition, values, set() if missing is None else missing)


@record(frozen=True)
class Choice:
    """The outcome of some steps and the step taken; None where it cannot be told, with what it hangs on."""

    then: Any
    step: Step | None
    needs: tuple[str, ...] = ()


def choose(steps: Iterable[Step], values: Mapping[str, object]) -> Choice:
    """The outcome of the first step that holds, or that may hold where all that may have the same outcome."""
    possible: list[Step] = []
    needs: set[str] = set()
    for step in steps:
        holds = evaluate(step.when, values, needs)
        if holds is not False:
            possible.append(step)
        if holds:
            break
    else:
        return Choice(None, None, tuple(sorted(needs)))
    if all(step.then == possible[0].then for step in possible):
        return Choice(possible[0].then, possible[-1])
    return Choice(None, None, tuple(sorted(needs)))


def holding(steps: Iterable[Step], values: Mapping[str, object]) -> tuple[list[Step], list[Step], tuple[str, ...]]:
    """Of steps that are all tried (features): those that hold, those that may, what these hang on."""
    sure, maybe, needs = [], [], set[str]()
    for step in steps:
        holds = evaluate(step.when, values, needs)
        if holds:
            sure.append(step)
        elif holds is None:
            maybe.append(step)
    return sure, maybe, tuple(sorted(needs))


def names(condition: Condition) -> set[str]:
    """All names that a condition speaks of."""
    if not isinstance(condition, list):
        return set()
    if condition[:1] == ["name"]:
        return {condition[1]} - {ITEM}
    if condition[:1] == ["const"]:
        return set()
    return set().union(*(names(part) for part in condition[1:]))


def _truth(condition: Condition, values: Mapping[str, object], missing: set[str]) -> bool | None:
    head, *rest = condition
    if head in {"and", "or"}:
        decisive = head == "or"  # one such operand decides, whatever the unknown ones are
        wanted: set[str] = set()
        result: bool | None = not decisive
        for part in rest:
            holds = _truth(part, values, wanted)
            if holds is decisive:
                return decisive
            if holds is None:
                result = None
        missing |= wanted
        return result
    if head == "not":
        holds = _truth(rest[0], values, missing)
        return None if holds is None else not holds
    if head == "if":
        wanted = set()
        holds = _truth(rest[0], values, wanted)
        if holds is not None:
            return _truth(rest[1] if holds else rest[2], values, missing)
        then, otherwise = (_truth(part, values, wanted) for part in rest[1:])
        if then is None or then is not otherwise:
            missing |= wanted
            return None
        return then
    if head in {"any", "all"}:
        parts = _elements(rest[0], values, missing)
        if parts is None:
            return None
        one = ["or" if head == "any" else "and", *(_put(rest[1], part) for part in parts)]
        return _truth(one, values, missing)
    found = _value(condition, values, missing)
    return None if found is _UNKNOWN else bool(found)


def _value(condition: Condition, values: Mapping[str, object], missing: set[str]) -> Any:
    head, *rest = condition
    if head == "const":
        return rest[0]
    if head == "name":
        return _named(rest[0], values, missing)
    if head == "?":
        missing.add(f"? {rest[0]}")
        return _UNKNOWN
    if head in {"and", "or"}:  # as a value: the operand at which Python stops
        found: Any = _UNKNOWN
        for part in rest:
            found = _value(part, values, missing)
            if found is _UNKNOWN or bool(found) is (head == "or"):
                return found
        return found
    if head == "if":
        holds = _truth(rest[0], values, missing)
        return _UNKNOWN if holds is None else _value(rest[1] if holds else rest[2], values, missing)
    if head == "list":
        items = [_value(part, values, missing) for part in rest]
        return _UNKNOWN if any(item is _UNKNOWN for item in items) else items
    if head == "len":
        parts = _elements(rest[0], values, missing)
        return _UNKNOWN if parts is None else len(parts)
    if head == "count":
        parts = _elements(rest[0], values, missing)
        held = [_truth(_put(rest[1], part), values, missing) for part in parts or ()]
        return _UNKNOWN if parts is None or None in held else sum(map(bool, held))
    if head in _COMPARE:
        left, right = (_value(part, values, missing) for part in rest)
        if left is _UNKNOWN or right is _UNKNOWN:
            return _UNKNOWN
        if left is _EXISTS or right is _EXISTS:  # all that is known of it is that it is not None
            known = None in (left, right) and head in {"is", "is not", "==", "!="}
            return head in {"is not", "!="} if known else _UNKNOWN
        try:
            return _COMPARE[head](left, right)
        except TypeError:
            missing.add(f"? {left!r} {head} {right!r}")
            return _UNKNOWN
    holds = _truth(condition, values, missing)
    return _UNKNOWN if holds is None else holds


def _named(name: str, values: Mapping[str, object], missing: set[str]) -> Any:
    if name in values:
        return values[name]
    if any(known.startswith(name + ".") for known in values):
        return _EXISTS
    missing.add(name)
    return _UNKNOWN


def _elements(condition: Condition, values: Mapping[str, object], missing: set[str]) -> list[Any] | None:
    found = _value(condition, values, missing)
    return list(found) if isinstance(found, list | tuple | set | frozenset | dict) else None


def _put(condition: Condition, item: object) -> Condition:
    """``condition`` with the element in the place of ``item``."""
    if condition == ["name", ITEM]:
        return ["const", item]
    if not isinstance(condition, list) or condition[:1] == ["const"]:
        return condition
    return [_put(part, item) for part in condition]
