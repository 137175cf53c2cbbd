"""What the statements of a function's body do."""

from __future__ import annotations

import argparse
import ast
import copy
from typing import Any

from specfix.engines.source.interpreter.definitions import Definitions
from specfix.engines.source.interpreter.expressions import Expressions
from specfix.engines.source.interpreter.limits import MAX_DEPTH, Budget
from specfix.engines.source.interpreter.names import Scope, binds
from specfix.engines.source.interpreter.operators import of_two
from specfix.engines.source.interpreter.standins import UndecidedError, Unknown


class _Returned(Exception):
    """A function is left by ``return``."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _LoopLeft(Exception):
    """A turn of a loop is left, for the next one (``again``) or for good."""

    def __init__(self, again: bool) -> None:
        self.again = again


class Statements:
    """Runs bodies, each kind of statement by the method of its name."""

    def __init__(self, budget: Budget, expressions: Expressions, definitions: Definitions) -> None:
        self._budget, self._expressions, self._definitions = budget, expressions, definitions
        self._depth = 0

    def call(self, body: ast.expr | list[ast.stmt], scope: Scope, given: tuple[Any, ...]) -> Any:
        """Run the body of a function. What cannot be decided in it makes the result unknown; but a parser that is
        handed over (``given``) would be left half done, so there the whole run ends."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise UndecidedError("calls are nested too deep")
            if isinstance(body, ast.expr):
                return self._expressions.evaluate(body, scope)
            self._run(body, scope)
        except _Returned as done:
            return done.value
        except UndecidedError as error:
            if any(isinstance(each, argparse._ActionsContainer) for each in given):
                raise
            return Unknown(str(error))
        finally:
            self._depth -= 1
        return None

    def _run(self, body: list[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._budget.spend()
            getattr(self, f"_{type(statement).__name__}", self._other)(statement, scope)

    def _other(self, statement: ast.stmt, scope: Scope) -> None:
        raise UndecidedError(f"{type(statement).__name__} is not run")

    def _Pass(self, statement: ast.Pass, scope: Scope) -> None:
        pass

    _Global = _Nonlocal = _Assert = _Pass

    def _Expr(self, statement: ast.Expr, scope: Scope) -> None:
        self._expressions.evaluate(statement.value, scope)

    def _Return(self, statement: ast.Return, scope: Scope) -> None:
        raise _Returned(self._expressions.evaluate(statement.value, scope) if statement.value else None)

    def _FunctionDef(self, statement: ast.FunctionDef, scope: Scope) -> None:
        scope.names[statement.name] = self._definitions.function(statement, scope)

    def _Import(self, statement: ast.Import, scope: Scope) -> None:
        for name in binds(statement):
            scope.names[name] = self._definitions.bind(statement, name, scope)

    def _ImportFrom(self, statement: ast.ImportFrom, scope: Scope) -> None:
        for name in binds(statement):
            try:
                scope.names[name] = self._definitions.bind(statement, name, scope)
            except UndecidedError as error:
                scope.names[name] = Unknown(str(error))

    def _Assign(self, statement: ast.Assign, scope: Scope) -> None:
        value = self._expressions.evaluate(statement.value, scope)
        for target in statement.targets:
            self._expressions.assign(target, value, scope)

    def _AnnAssign(self, statement: ast.AnnAssign, scope: Scope) -> None:
        if statement.value is not None:
            self._expressions.assign(statement.target, self._expressions.evaluate(statement.value, scope), scope)

    def _AugAssign(self, statement: ast.AugAssign, scope: Scope) -> None:
        reading = copy.copy(statement.target)
        reading.ctx = ast.Load()
        old = self._expressions.evaluate(reading, scope)
        new = self._expressions.evaluate(statement.value, scope)
        if isinstance(old, list) and isinstance(statement.op, ast.Add):
            old.extend(new)
            return
        self._expressions.assign(statement.target, of_two(statement.op, old, new), scope)

    def _Delete(self, statement: ast.Delete, scope: Scope) -> None:
        for target in statement.targets:
            if not isinstance(target, ast.Subscript):
                raise UndecidedError(ast.unparse(statement))
            owner = self._expressions.evaluate(target.value, scope)
            if isinstance(owner, Unknown):
                raise UndecidedError(owner.reason)
            del owner[self._expressions.evaluate(target.slice, scope)]

    def _If(self, statement: ast.If, scope: Scope) -> None:
        holds = self._expressions.holds(statement.test, scope)
        self._run(statement.body if holds else statement.orelse, scope)

    def _For(self, statement: ast.For, scope: Scope) -> None:
        for value in self._budget.each(self._expressions.evaluate(statement.iter, scope)):
            self._expressions.assign(statement.target, value, scope)
            if not self._turn(statement.body, scope):
                return
        self._run(statement.orelse, scope)

    def _While(self, statement: ast.While, scope: Scope) -> None:
        while self._expressions.holds(statement.test, scope) and self._turn(statement.body, scope):
            pass

    def _turn(self, body: list[ast.stmt], scope: Scope) -> bool:
        """Run the body of a loop once. Whether the loop goes on."""
        try:
            self._run(body, scope)
        except _LoopLeft as left:
            return left.again
        return True

    def _Break(self, statement: ast.Break, scope: Scope) -> None:
        raise _LoopLeft(False)

    def _Continue(self, statement: ast.Continue, scope: Scope) -> None:
        raise _LoopLeft(True)

    def _With(self, statement: ast.With, scope: Scope) -> None:
        for item in statement.items:
            if item.optional_vars is not None:
                self._expressions.assign(item.optional_vars, Unknown(ast.unparse(item.context_expr)), scope)
        self._run(statement.body, scope)

    def _Raise(self, statement: ast.Raise, scope: Scope) -> None:
        error = self._expressions.evaluate(statement.exc, scope) if statement.exc else None
        if isinstance(error, type) and issubclass(error, Exception):
            error = error()
        raise error if isinstance(error, Exception) else UndecidedError(f"raises {ast.unparse(statement)[:60]}")

    def _Try(self, statement: ast.Try, scope: Scope) -> None:
        try:
            self._run(statement.body, scope)
        except (_Returned, _LoopLeft, UndecidedError):
            raise
        except Exception as error:
            for handler in statement.handlers:
                kinds = self._expressions.evaluate(handler.type, scope) if handler.type else Exception
                if isinstance(kinds, type | tuple) and isinstance(error, kinds):
                    if handler.name:
                        scope.names[handler.name] = error
                    self._run(handler.body, scope)
                    break
            else:
                raise
        else:
            self._run(statement.orelse, scope)
        self._run(statement.finalbody, scope)
