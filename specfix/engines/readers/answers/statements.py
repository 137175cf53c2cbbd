"""What statements of the engine return, by the tests on the way."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from specfix.engines.compiled import Condition
from specfix.engines.readers.answers.expressions import Expressions
from specfix.engines.readers.answers.scope import Scope
from specfix.engines.readers.folding import NONE, RAISES, if_
from specfix.engines.source.tree import dotted, walk

MAX_STEPS = 20_000  # statements run for one answer; a function of many tests in a row has 2^n ways


class Statements:
    """``steps`` are those that were run, whatever called them."""

    def __init__(self, expressions: Expressions) -> None:
        self._lift = expressions.lift
        self.steps = 0

    def run(self, body: Sequence[ast.stmt], scope: Scope) -> Condition:
        for position, node in enumerate(body):
            self.steps += 1
            if self.steps > MAX_STEPS:
                return ["?", "too many branches"]
            rest = body[position + 1 :]
            match node:
                case ast.Return(value=value):
                    return NONE if value is None else self._lift(value, scope)
                case ast.Raise():
                    return RAISES
                case ast.If():
                    test = self._lift(node.test, scope)
                    if test[0] == "const":
                        return self.run([*(node.body if test[1] else node.orelse), *rest], scope)
                    ways = [
                        self.run([*way, *rest], replace(scope, local=dict(scope.local)))
                        for way in (node.body, node.orelse)
                    ]
                    return if_(test, *ways)
                case (
                    ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    self._assign(target, value, scope)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=arguments)):
                    if name in scope.local:
                        given = [self._lift(argument, scope) for argument in arguments]
                        scope.local[name] = _changed(scope.local[name], attr, given)
                case ast.FunctionDef(name=name):
                    scope.local[name] = ["def", node]
                case ast.Try(body=tried, handlers=handlers) if not any(any(walk(h, ast.Return)) for h in handlers):
                    return self.run([*tried, *rest], scope)
                case ast.Expr() | ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Assert() | ast.AnnAssign():
                    pass
                case _:
                    return ["?", f"a {type(node).__name__.lower()} statement"]
        return NONE

    def _assign(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        if isinstance(target, ast.Tuple):
            for part in target.elts:
                scope.local[dotted(part) or "?"] = ["?", "a part of a value that is computed"]
        else:
            scope.local[dotted(target) or "?"] = self._lift(value, scope)


def _changed(before: Condition, method: str, arguments: Sequence[Condition]) -> Condition:
    """A list after ``list.append(value)`` and the like; anything else as it was."""
    if before[0] != "const" or not isinstance(before[1], list):
        return before
    after = list(before[1])
    match method, arguments:
        case "append", [["const", value]]:
            after.append(value)
        case "insert", [["const", int(index)], ["const", value]]:
            after.insert(index, value)
        case "extend", [["const", list(values)]]:
            after.extend(values)
        case _:
            return ["?", f"{method} of a list"]
    return ["const", after]
