"""What the engine sets in its own config: fields that a function assigns constants to, and under which tests."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from specfix.engines.compiled import Condition
from specfix.engines.conditions import names
from specfix.engines.facts.decisions import Step
from specfix.engines.readers.answers.ask import Answers
from specfix.engines.readers.folding import both, has_unread, if_, negated
from specfix.engines.source.classes import Classes
from specfix.engines.source.joining import TRUE
from specfix.engines.source.tree import SourceTree, dotted


def read_forced(tree: SourceTree, file: str, name: str, only: str | None = None) -> dict[str, tuple[Step, ...]]:
    """Config field (``scheduler_config.async_scheduling``) to the constants that the function sets it to, in the order
    of the source; with ``only`` this field alone, whatever its tests speak of.

    A field is left out where what it is in the end hangs on more than the config: where it is also set to something
    computed, in a loop, under a test of a field that was set before, or under one that calls something.
    """
    function = tree.function(file, name)
    if function is None:
        return {}
    walker = _Walker(Answers(tree, Classes(tree)), file, only)
    walker.walk(function.body, TRUE, False, {})
    return {field: tuple(found) for field, found in walker.set.items() if field not in walker.lost}


class _Walker:
    def __init__(self, answers: Answers, file: str, only: str | None) -> None:
        self._answers = answers
        self._file = file
        self._only = only
        self.set: dict[str, list[Step]] = {}
        self.lost: set[str] = set()

    def walk(self, body: Sequence[ast.stmt], when: Condition, stale: bool, local: dict[str, Condition]) -> Condition:
        """The tests under which the end of ``body`` is reached. ``stale``: one of those that lead to it speaks of a
        field that was set before."""
        for node in body:
            match node:
                case ast.If():
                    when, stale = self._if(node, when, stale, local)
                case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                    if node.value is not None:
                        self._assign(target, node.value, Step(when, None, node.lineno), stale, local)
                case ast.Return() | ast.Raise():
                    break
                case ast.Expr() | ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass():
                    pass
                case _:
                    self._pass_over(node, local)
        return when

    def _if(self, node: ast.If, when: Condition, stale: bool, local: dict[str, Condition]) -> tuple[Condition, bool]:
        test = self._answers.value(self._file, node.test, local)
        inner = stale or any(name in self.set for name in names(test))
        then, otherwise = dict(local), dict(local)
        ends = [
            self.walk(node.body, both([when, test]), inner, then),
            self.walk(node.orelse, both([when, negated(test)]), inner, otherwise),
        ]
        for name in then.keys() & otherwise.keys():
            local[name] = if_(test, then[name], otherwise[name])
        if _returns(node.body):
            return ends[1], inner
        return (ends[0], inner) if _returns(node.orelse) else (when, stale)

    def _assign(self, target: ast.expr, value: ast.expr, step: Step, stale: bool, local: dict[str, Condition]) -> None:
        found = self._answers.value(self._file, value, local)
        if isinstance(target, ast.Name):
            local[target.id] = found
        field = self._field(target, local)
        if field is None:
            return
        calls = self._only is None and any("(" in name for name in step.names)
        if found[0] != "const" or stale or calls or has_unread(step.when):
            self.lost.add(field)
        self.set.setdefault(field, []).append(Step(step.when, found[1], step.line))

    def _pass_over(self, node: ast.stmt, local: dict[str, Condition]) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                self.lost.add(self._field(inner, local) or "")
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                local[inner.id] = ["?", f"set in a {type(node).__name__.lower()} statement"]

    def _field(self, target: ast.expr, local: dict[str, Condition]) -> str | None:
        """``scheduler_config.async_scheduling``, whatever the function calls that config."""
        if not isinstance(target, ast.Attribute) or dotted(target) is None:
            return None
        owner = self._answers.value(self._file, target.value, local)
        if owner[0] != "name" or not owner[1].endswith("_config") or owner[1] == "vllm_config":
            return None
        field = f"{owner[1]}.{target.attr}"
        return field if self._only in {None, field} else None


def _returns(body: Sequence[ast.stmt]) -> bool:
    """Whether what follows is not done; after an error nothing matters any more."""
    return bool(body) and isinstance(body[-1], ast.Return)
