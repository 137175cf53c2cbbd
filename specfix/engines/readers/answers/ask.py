"""Asks functions and classes of the engine what they answer."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from specfix.engines.compiled import Condition
from specfix.engines.readers.answers.calls import Calls
from specfix.engines.readers.answers.expressions import Expressions
from specfix.engines.readers.answers.scope import Backing, Scope
from specfix.engines.readers.answers.statements import Statements
from specfix.engines.source.classes import Class, Classes
from specfix.engines.source.tree import SourceTree, dotted


class Answers:
    """Those of ``tree``.

    ``known``: what is given, by the words of the source (``current_platform.is_cpu()``). ``domains``: all values that
    a name of the conditions can have, for tests of its beginning and end.
    """

    def __init__(
        self,
        tree: SourceTree,
        classes: Classes,
        known: Mapping[str, object] | None = None,
        domains: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.tree = tree
        self._classes = classes
        self._expressions = Expressions(tree, classes, known or {}, self._call)
        self._statements = Statements(self._expressions)
        self._calls = Calls(tree, self._expressions, domains or {}, self._statements.run)

    def method(self, backing: Backing, name: str, *arguments: Condition) -> Condition | None:
        """What the class method answers to these arguments; None where the class has none of that name."""
        self._statements.steps = 0
        return self._calls.method(backing, name, arguments, {})

    def function(self, file: str, name: str, arguments: Mapping[str, Condition]) -> Condition | None:
        """What the function or method in ``file`` answers; None where there is none."""
        function = self.tree.function(file, name)
        return None if function is None else self.statements(file, function.body, arguments)

    def statements(self, file: str, body: Sequence[ast.stmt], local: Mapping[str, Condition]) -> Condition:
        """What these statements of ``file`` return."""
        self._statements.steps = 0
        return self._statements.run(body, Scope(file, dict(local)))

    def value(self, file: str, node: ast.expr, local: dict[str, Condition]) -> Condition:
        """One expression of ``file``, with local names, to which it may add."""
        self._statements.steps = 0
        return self._expressions.lift(node, Scope(file, local))

    def backing(self, path: str) -> Backing | None:
        """The class at ``module.Class``; None where it is not there or made in a way that cannot be read."""
        found = self._classes.at(path)
        if len(found) == 1 and found[0] is not None:
            return Backing(self._classes.lineage(found[0]))
        module, _, name = path.rpartition(".")
        file = f"{module.partition('.')[2].replace('.', '/')}.py"
        made = self.tree.assigned(file, name)
        return self._made(file, made) if isinstance(made, ast.Call) else None

    def _call(self, node: ast.Call, scope: Scope) -> Condition:
        """For expressions, whose calls run statements, which hold expressions."""
        return self._calls.call(node, scope)

    def _made(self, file: str, call: ast.Call) -> Backing | None:
        """The class that a function of the tree makes and returns, with that function's arguments."""
        maker = dotted(call.func) or ""
        home = self._expressions.home(file, maker)
        function = self.tree.function(home, maker) if home else None
        if home is None or function is None:
            return None
        returned = {dotted(s.value) for s in function.body if isinstance(s, ast.Return) and s.value}
        for statement in function.body:
            if isinstance(statement, ast.ClassDef) and statement.name in returned:
                closure = self._calls.bound(function, call, Scope(file, {}))
                return Backing(self._classes.lineage(Class(home, statement)), closure)
        return None
