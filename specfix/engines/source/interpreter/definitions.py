"""What the statements that define a name bind it to: functions, classes, enums, imports, values."""

from __future__ import annotations

import ast
import enum
import types
import typing
from collections.abc import Iterator
from typing import Any

from specfix.engines.source.interpreter.expressions import Expressions
from specfix.engines.source.interpreter.names import Modules, Runner, Scope, binds
from specfix.engines.source.interpreter.source_classes import ClassScope, SourceClass
from specfix.engines.source.interpreter.standins import BUILTINS, UndecidedError, Unknown, outside
from specfix.engines.source.tree import dotted


class Definitions:
    """Makes what is defined."""

    def __init__(self, expressions: Expressions, modules: Modules, runner: Runner) -> None:
        self._expressions, self._modules, self._runner = expressions, modules, runner

    def bind(self, statement: ast.stmt, name: str, scope: Scope) -> Any:
        """What ``statement`` binds ``name`` to."""
        if isinstance(statement, ast.FunctionDef):
            return self.function(statement, scope)
        if isinstance(statement, ast.ClassDef):
            return self._class(statement, scope)
        if isinstance(statement, ast.ImportFrom):
            alias = next(a for a in statement.names if (a.asname or a.name) in {name, "*"})
            return self._modules.member(scope.module.absolute(statement), name if alias.name == "*" else alias.name)
        if isinstance(statement, ast.Import):
            alias = next(a for a in statement.names if (a.asname or a.name.partition(".")[0]) == name)
            return self._modules.any(alias.name if alias.asname else name)
        given = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if given is None:
            raise UndecidedError(f"{name}: {ast.unparse(statement)[:60]}")
        value = self._expressions.evaluate(given, scope)
        if isinstance(statement, ast.Assign) and not isinstance(statement.targets[0], ast.Name):
            inner = Scope(scope)
            self._expressions.assign(statement.targets[0], value, inner)
            return inner.names[name]
        return value

    def function(self, node: ast.FunctionDef, scope: Scope) -> Any:
        """A function as its decorators make it, as far as they are Python's own."""
        made: Any = self._expressions.function(node, scope)
        for decorator in node.decorator_list:
            name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
            if name in {"staticmethod", "classmethod", "property"}:
                made = BUILTINS[name](made)
        return made

    def _class(self, node: ast.ClassDef, scope: Scope) -> Any:
        bases: list[Any] = [self._base(base, scope) for base in node.bases]
        if any(base in {typing.TypedDict, typing.NamedTuple} for base in bases if callable(base)):
            return typing.TypedDict(node.name, {}) if typing.TypedDict in bases else outside(f"vllm.{node.name}")  # type: ignore[operator]
        bases = [base for base in bases if isinstance(base, type) and base not in {object, typing.Generic}]
        if any(issubclass(base, enum.Enum) for base in bases):
            return self._enum(node, tuple(bases), scope)
        bases = [base for base in bases if issubclass(SourceClass, type(base))]  # no Protocol, no abstract one
        body = dict(self._members(node.body, scope))
        names: dict[str, Any] = {"path": f"{scope.module.name}.{node.name}", "__module__": scope.module.name}
        names |= {"_members": body, "node": node, "scope": scope, "interpreter": self._runner}
        names["__getattr__"] = lambda instance, name: getattr(type(instance), name)
        cls = SourceClass(node.name, tuple(bases), names)
        for name, statement in body.items():
            if isinstance(statement, ast.FunctionDef):
                method = self.function(statement, ClassScope(scope, cls))
                function = getattr(method, "__func__", None) or getattr(method, "fget", None) or method
                function.owner = cls
                type.__setattr__(cls, name, method)
        return cls

    def _base(self, base: ast.expr, scope: Scope) -> Any:
        value = self._expressions.soft(base.value if isinstance(base, ast.Subscript) else base, scope)
        return outside(f"unread.{ast.unparse(base)}") if value is None or isinstance(value, Unknown) else value

    def _members(self, body: list[ast.stmt], scope: Scope) -> Iterator[tuple[str, ast.stmt]]:
        for statement in body:
            if isinstance(statement, ast.If):
                holds = self._expressions.holds(statement.test, scope)
                yield from self._members(statement.body if holds else statement.orelse, scope)
            else:
                for name in binds(statement):
                    yield name, statement

    def _enum(self, node: ast.ClassDef, bases: tuple[type, ...], scope: Scope) -> Any:
        inner = Scope(scope)

        def fill(names: Any) -> None:
            names["__module__"] = scope.module.name
            for statement in node.body:
                if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                    inner.names[statement.targets[0].id] = self._expressions.evaluate(statement.value, inner)
                    names[statement.targets[0].id] = inner.names[statement.targets[0].id]

        return types.new_class(node.name, bases, {}, fill)
