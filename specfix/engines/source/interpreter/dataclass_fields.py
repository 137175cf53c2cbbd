"""``dataclasses.fields`` of a class of the source, with the hints of its annotations."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from specfix.engines.source.interpreter.expressions import Expressions
from specfix.engines.source.interpreter.names import Scope
from specfix.engines.source.interpreter.source_classes import ClassScope, SourceClass, members
from specfix.engines.source.interpreter.standins import Field, FieldInfo, UndecidedError, Unknown
from specfix.engines.source.tree import dotted

DECORATORS = frozenset({"dataclass", "config"})  # the second is vLLM's own


def is_dataclass(cls: Any) -> bool:
    """Whether it is a dataclass of the source."""
    return isinstance(cls, SourceClass) and any(map(_is_decorated, cls.__mro__))


def fields(expressions: Expressions, cls: Any) -> list[Field]:
    """The fields of a class and its bases. UndecidedError where it is no dataclass that could be read."""
    if not is_dataclass(cls):
        raise UndecidedError(f"{getattr(cls, '__name__', cls)} is no dataclass that could be read")
    found: dict[str, Field] = {}
    for owner in filter(_is_decorated, reversed(cls.__mro__)):
        for name, statement in members(owner).items():
            if isinstance(statement, ast.AnnAssign) and not _is_class_variable(statement.annotation):
                found[name] = _field(expressions, name, statement, ClassScope(owner.scope, owner))
    return list(found.values())


def _is_decorated(owner: type) -> bool:
    if not isinstance(owner, SourceClass):
        return False
    decorators = (d.func if isinstance(d, ast.Call) else d for d in owner.node.decorator_list)
    return any((dotted(decorator) or "").rpartition(".")[2] in DECORATORS for decorator in decorators)


def _is_class_variable(annotation: ast.expr) -> bool:
    text = ast.unparse(annotation)
    return "ClassVar[" in text or text == "ClassVar" or text.startswith("InitVar")


def _field(expressions: Expressions, name: str, statement: ast.AnnAssign, scope: Scope) -> Field:
    missing = dataclasses.MISSING
    hint = _hint(expressions, statement.annotation, scope)
    if statement.value is None:
        return Field(name, hint, missing, missing)
    default = expressions.soft(statement.value, scope)
    if isinstance(default, FieldInfo) and default.from_dataclasses:
        return Field(name, hint, default.default, default.default_factory or missing, bool(default.init))
    return Field(name, hint, default, missing)


def _hint(expressions: Expressions, node: ast.expr, scope: Scope) -> Any:
    """A type hint; one in quotes is read as if it were in none, as pydantic does."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError as error:
            return Unknown(f"a hint is no Python: {error}")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [_hint(expressions, side, scope) for side in (node.left, node.right)]
        unread = next((side for side in sides if isinstance(side, Unknown)), None)
        return unread or sides[0] | sides[1]
    return expressions.soft(node, scope)
