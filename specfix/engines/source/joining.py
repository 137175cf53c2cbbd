"""Conditions joined to one, and what a body of statements leads to."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from specfix.engines.compiled import Condition

TRUE: Condition = ["const", True]
FALSE: Condition = ["const", False]


def every(*parts: Condition) -> Condition:
    """All of ``parts``, without those that always hold."""
    flat = [inner for part in parts if part != TRUE for inner in (part[1:] if part[0] == "and" else [part])]
    return TRUE if not flat else flat[0] if len(flat) == 1 else ["and", *flat]


def negated(part: Condition) -> Condition:
    """``not part``."""
    if part in (TRUE, FALSE):
        return FALSE if part == TRUE else TRUE
    return part[1] if part[0] == "not" else ["not", part]


def either_way(test: Condition, then: Condition, otherwise: Condition) -> Condition:
    """``then`` where ``test`` holds, else ``otherwise``."""
    if test[0] == "const":
        return then if test[1] else otherwise
    if then == TRUE:
        return ["or", test, otherwise] if otherwise != FALSE else test
    if then == FALSE:
        return every(negated(test), otherwise) if otherwise != TRUE else negated(test)
    if otherwise == FALSE:
        return every(test, then)
    return ["if", test, then, otherwise]


def is_lifted(condition: Condition) -> bool:
    """Whether no part of ``condition`` is unknown."""
    if condition[:1] == ["const"]:
        return True
    return condition[:1] != ["?"] and all(is_lifted(part) for part in condition if isinstance(part, list))


def ends(body: Sequence[ast.stmt]) -> bool:
    """Whether no run of ``body`` passes its end."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return ends(last.body) and ends(last.orelse)
    return isinstance(last, ast.Return | ast.Raise)
