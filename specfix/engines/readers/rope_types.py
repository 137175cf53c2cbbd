"""Read what a release refuses of an older RoPE block while it reads a config: ``patch_legacy_rope_type``, by whatever
name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specfix.engines.source.tree import SourceTree, dotted, literal, walk

FILE = "transformers_utils/config.py"
NEW, OLD = "rope_type", "type"


def read_type_pairs(tree: SourceTree) -> dict[str, str] | None:
    """By an older ``type``, the ``rope_type`` that may stand beside it although it is another. None where the two are
    not compared."""
    module = tree.module(FILE)
    for branch in walk(module, ast.If) if module else ():
        if set(_held(branch.test)) == {NEW, OLD}:
            pairs = _spared(branch.body)
            if pairs is not None:
                return pairs
    return None


def read_sections(tree: SourceTree) -> dict[str, str]:
    """By rope_type, the key without which the block is refused: ``if block["rope_type"] == "mrope": assert "key" in
    block``, or the same with an ``if`` that raises."""
    module = tree.module(FILE)
    found: dict[str, str] = {}
    for branch in walk(module, ast.If) if module else ():
        rope_type = _compared(branch.test)
        first = branch.body[0]
        keys: list[str] = []
        if isinstance(first, ast.Assert):
            keys = list(_held(first.test))
        elif isinstance(first, ast.If) and isinstance(first.body[0], ast.Raise):
            keys = list(_held(first.test, ast.NotIn))
        if rope_type is not None and len(keys) == 1:
            found[rope_type] = keys[0]
    return found


def _held(test: ast.expr, operator: type[ast.cmpop] = ast.In) -> Iterator[str]:
    """The keys that a test, or each part of one that joins several by ``and``, finds in a block: ``"key" in block``."""
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
        key = literal(part.left) if isinstance(part, ast.Compare) else None
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], operator) and isinstance(key, str):
            yield key


def _compared(test: ast.expr) -> str | None:
    """The type of ``block["rope_type"] == "type"``."""
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)):
        return None
    left, right = test.left, literal(test.comparators[0])
    asks = isinstance(left, ast.Subscript) and literal(left.slice) == NEW
    return right if asks and isinstance(right, str) else None


def _spared(body: list[ast.stmt]) -> dict[str, str] | None:
    """``if (type == "a" and rope_type == "b") or …: pass`` of ``elif rope_type != type: raise``. None where nothing is
    raised."""
    names = {
        dotted(statement.targets[0]): literal(statement.value.slice)
        for statement in body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Subscript)
    }
    pairs: dict[str, str] = {}
    node: ast.stmt | None = next((statement for statement in body if isinstance(statement, ast.If)), None)
    while isinstance(node, ast.If):
        test = node.test
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq) and isinstance(node.body[0], ast.Raise):
            both = {names.get(dotted(side)) for side in (test.left, test.comparators[0])}
            return pairs if both == {NEW, OLD} else None
        for pair in (part for part in walk(test, ast.BoolOp) if isinstance(part.op, ast.And)):
            said = {
                names.get(dotted(part.left)): literal(part.comparators[0])
                for part in pair.values
                if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Eq)
            }
            old, new = said.get(OLD), said.get(NEW)
            if not (len(said) == 2 and isinstance(old, str) and isinstance(new, str)):
                return None
            pairs[old] = new
        node = node.orelse[0] if len(node.orelse) == 1 else None
    return None
