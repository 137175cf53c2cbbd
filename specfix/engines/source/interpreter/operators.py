"""What operators and comparisons of the source make of their sides."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from specfix.engines.comparisons import COMPARISONS
from specfix.engines.source.interpreter.limits import refuse_large
from specfix.engines.source.interpreter.source_classes import is_foreign
from specfix.engines.source.interpreter.standins import UndecidedError, Unknown
from specfix.engines.source.words import COMPARED_BY

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}


def of_one(op: ast.unaryop, value: Any) -> Any:
    return value if isinstance(value, Unknown) else _UNARY[type(op)](value)


def of_two(op: ast.operator, left: Any, right: Any) -> Any:
    for side in (left, right):
        if isinstance(side, Unknown):
            return side
        if is_foreign(side) and not isinstance(op, ast.BitOr):  # not in a hint
            return Unknown(f"{side.path} is not in this source")
    refuse_large(op, left, right)
    try:
        return _BINARY[type(op)](left, right)
    except UndecidedError as error:
        return Unknown(str(error))


def compared(op: ast.cmpop, left: Any, right: Any) -> bool | Unknown:
    sides = (left, right)
    by_identity = isinstance(op, ast.Is | ast.IsNot) and None not in sides
    for side in sides:
        if isinstance(side, Unknown):
            return side
        if is_foreign(side) and not by_identity:
            return Unknown(f"{side.path} is not in this source")
    try:
        return bool(COMPARISONS[COMPARED_BY[type(op)]](left, right))
    except UndecidedError as error:
        return Unknown(str(error))
