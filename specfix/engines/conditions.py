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

from collections.abc import Iterable, Mapping
from typing import Any

from specfix.engines.compiled import ITEM, UNKNOWN, Condition, Known, compiled, names
from specfix.engines.facts.decisions import Step
from specfix.record import record

__all__ = ["ITEM", "Choice", "Known", "choose", "evaluate", "holding", "names"]


def evaluate(condition: Condition, values: Mapping[str, object], missing: set[str] | None = None) -> bool | None:
    """Whether ``condition`` holds, or None where that hangs on something unknown, added to ``missing``.

    ``values`` holds what is known by dotted name. Where an attribute is known (``a.b``), ``a`` is not None.
    """
    return compiled(condition)(values, missing, UNKNOWN)


@record(frozen=True)
class Choice:
    """The outcome of some steps and the step taken; None where it cannot be told, with what it hangs on."""

    then: Any
    step: Step | None
    needs: tuple[str, ...] = ()


def choose(steps: Iterable[Step], values: Mapping[str, object]) -> Choice:
    """The outcome of the first step that holds, or that may hold where all that may have the same outcome."""
    possible: list[Step] = []
    for step in steps:
        holds = step.holds(values)
        if holds is not False:
            possible.append(step)
        if holds:
            if all(step.then == other.then for other in possible):
                return Choice(step.then, step)
            break
    return Choice(None, None, missing(possible, values))


def missing(steps: Iterable[Step], values: Mapping[str, object]) -> tuple[str, ...]:
    """What it hangs on whether each of ``steps`` holds."""
    names: set[str] = set()
    for step in steps:
        step.holds(values, names)
    return tuple(sorted(names))


def holding(steps: Iterable[Step], values: Mapping[str, object]) -> tuple[list[Step], list[Step], tuple[str, ...]]:
    """Of steps that are all tried (features): those that hold, those that may, what these hang on."""
    sure, maybe = [], []
    for step in steps:
        holds = step.holds(values)
        if holds:
            sure.append(step)
        elif holds is None:
            maybe.append(step)
    return sure, maybe, missing(maybe, values)
