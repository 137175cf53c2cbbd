"""What an expression of the source is, and what assigning to one sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from specfix.engines.source.interpreter.attributes import attribute, set_attribute
from specfix.engines.source.interpreter.calls import Calls
from specfix.engines.source.interpreter.functions import Function
from specfix.engines.source.interpreter.limits import Budget
from specfix.engines.source.interpreter.names import Runner, Scope
from specfix.engines.source.interpreter.operators import compared, of_one, of_two
from specfix.engines.source.interpreter.source_classes import is_foreign
from specfix.engines.source.interpreter.standins import Outside, UndecidedError, Unknown


class Expressions:
    """Evaluates expressions, each kind of node by the method of its name."""

    def __init__(self, budget: Budget, calls: Calls, runner: Runner) -> None:
        self._budget, self._calls, self._runner = budget, calls, runner

    def evaluate(self, node: ast.expr, scope: Scope) -> Any:
        """The value of an expression. UndecidedError where there is nothing to stand for it."""
        self._budget.spend()
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            raise UndecidedError(f"{type(node).__name__} is not worked out")
        return method(node, scope)

    def soft(self, node: ast.expr, scope: Scope) -> Any:
        """The same; Unknown where there is nothing to stand for it."""
        try:
            return self.evaluate(node, scope)
        except UndecidedError as error:
            return Unknown(str(error))

    def holds(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a test holds. UndecidedError where that cannot be told."""
        return bool(self._value(node, scope))

    def function(self, node: ast.FunctionDef | ast.Lambda, scope: Scope) -> Function:
        """A function, whose defaults are worked out where it is made."""
        defaults = [self.evaluate(default, scope) for default in node.args.defaults]
        named = [default and self.evaluate(default, scope) for default in node.args.kw_defaults]
        return Function(self._runner, node, scope, defaults, named)

    def assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        """Set what ``target`` says. UndecidedError where that is nothing that may be set."""
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, list(self._budget.each(value)), scope)
        elif isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value, scope)
            if not isinstance(owner, Unknown):
                owner[self.evaluate(target.slice, scope)] = value
        elif isinstance(target, ast.Attribute):
            set_attribute(self.evaluate(target.value, scope), target.attr, value)
        else:
            raise UndecidedError(ast.unparse(target))

    def _unpack(self, target: ast.Tuple | ast.List, values: list[Any], scope: Scope) -> None:
        star = next((i for i, part in enumerate(target.elts) if isinstance(part, ast.Starred)), None)
        if star is not None:
            after = len(target.elts) - star - 1
            middle = values[star : len(values) - after]
            values = [*values[:star], middle, *values[len(values) - after :]]
        for part, value in zip(target.elts, values, strict=True):
            self.assign(part.value if isinstance(part, ast.Starred) else part, value, scope)

    def _value(self, node: ast.expr, scope: Scope) -> Any:
        """As ``evaluate``, where a value is needed: a name of another package stands for none."""
        value = self.evaluate(node, scope)
        return Unknown(f"{value.path} is not in this source") if is_foreign(value) else value

    def _Constant(self, node: ast.Constant, scope: Scope) -> Any:
        return node.value

    def _Name(self, node: ast.Name, scope: Scope) -> Any:
        return scope.get(node.id)

    def _Attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return attribute(self.evaluate(node.value, scope), node.attr)

    def _Subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        owner, key = self.evaluate(node.value, scope), self.evaluate(node.slice, scope)
        if isinstance(owner, Unknown | Outside):
            return owner  # Generic[T]
        return key if isinstance(key, Unknown) else owner[key]

    def _Slice(self, node: ast.Slice, scope: Scope) -> Any:
        return slice(*(part and self.evaluate(part, scope) for part in (node.lower, node.upper, node.step)))

    def _Tuple(self, node: ast.Tuple, scope: Scope) -> Any:
        return tuple(self._elements(node.elts, scope))

    def _List(self, node: ast.List, scope: Scope) -> Any:
        return list(self._elements(node.elts, scope))

    def _Set(self, node: ast.Set, scope: Scope) -> Any:
        return set(self._elements(node.elts, scope))

    def _elements(self, nodes: list[ast.expr], scope: Scope) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self._budget.each(self.evaluate(node.value, scope))
            else:
                yield self.soft(node, scope)

    def _Dict(self, node: ast.Dict, scope: Scope) -> Any:
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                made |= self.evaluate(value, scope)
            else:
                made[self.evaluate(key, scope)] = self.soft(value, scope)
        return made

    def _Lambda(self, node: ast.Lambda, scope: Scope) -> Any:
        return self.function(node, scope)

    def _IfExp(self, node: ast.IfExp, scope: Scope) -> Any:
        try:
            holds = self.holds(node.test, scope)
        except UndecidedError as error:
            return Unknown(str(error))
        return self.evaluate(node.body if holds else node.orelse, scope)

    def _NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> Any:
        value = self.evaluate(node.value, scope)
        self.assign(node.target, value, scope)
        return value

    def _JoinedStr(self, node: ast.JoinedStr, scope: Scope) -> Any:
        try:
            return "".join(str(self.evaluate(part, scope)) for part in node.values)
        except UndecidedError as error:
            return Unknown(str(error))

    def _FormattedValue(self, node: ast.FormattedValue, scope: Scope) -> str:
        if node.format_spec is not None:
            raise UndecidedError("a format")
        value = self._value(node.value, scope)
        return repr(value) if node.conversion == ord("r") else str(value)

    def _BoolOp(self, node: ast.BoolOp, scope: Scope) -> Any:
        stops = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self._value(part, scope)
            if isinstance(value, Unknown) or (part is not node.values[-1] and bool(value) is stops):
                break
        return value

    def _UnaryOp(self, node: ast.UnaryOp, scope: Scope) -> Any:
        return of_one(node.op, self._value(node.operand, scope))

    def _BinOp(self, node: ast.BinOp, scope: Scope) -> Any:
        return of_two(node.op, self.evaluate(node.left, scope), self.evaluate(node.right, scope))

    def _Compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.evaluate(node.left, scope)
        for op, following in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(following, scope)
            holds = compared(op, left, right)
            if holds is not True:
                return holds
            left = right
        return True

    def _ListComp(self, node: ast.ListComp, scope: Scope) -> Any:
        return list(self._gone_through(node.generators, node.elt, scope))

    def _GeneratorExp(self, node: ast.GeneratorExp, scope: Scope) -> Any:
        return self._gone_through(node.generators, node.elt, scope)

    def _SetComp(self, node: ast.SetComp, scope: Scope) -> Any:
        return set(self._gone_through(node.generators, node.elt, scope))

    def _DictComp(self, node: ast.DictComp, scope: Scope) -> Any:
        pair = ast.Tuple(elts=[node.key, node.value], ctx=ast.Load())
        return dict(self._gone_through(node.generators, pair, scope))

    def _gone_through(self, loops: list[ast.comprehension], element: ast.expr, scope: Scope) -> Iterator[Any]:
        if not loops:
            yield self.evaluate(element, scope)
            return
        for value in self._budget.each(self.evaluate(loops[0].iter, scope)):
            inner = Scope(scope)
            self.assign(loops[0].target, value, inner)
            if all(self.holds(test, inner) for test in loops[0].ifs):
                yield from self._gone_through(loops[1:], element, inner)

    def _Call(self, node: ast.Call, scope: Scope) -> Any:
        function = self.evaluate(node.func, scope)
        if isinstance(function, Unknown):
            return function
        given = list(self._elements(node.args, scope))
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                named |= self.evaluate(keyword.value, scope)
            else:
                named[keyword.arg] = self.soft(keyword.value, scope)
        return self._calls.apply(function, given, named)
