"""What comparisons of the syntax tree are called in conditions and derived values (``specfix.engines.comparisons``)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

COMPARED_BY: Final[Mapping[type[ast.AST], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
