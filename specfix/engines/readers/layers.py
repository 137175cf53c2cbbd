"""What becomes of the draft's layers: where the order of their names decides something, and whether that order is a
fixed one; what they take from the config's per-layer lists.

The names are kept in a set of strings, whose order differs from one process to the next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from specfix.engines.facts.drafting import LayerFacts, MethodFacts
from specfix.engines.readers.layer_lists import read_cut_lists, read_past_lists, read_windowed
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

FOLDERS = ("v1/spec_decode", "v1/worker")
NAMES = ("attn_layer_names", "indexer_layer_names")


def read_layers(tree: SourceTree, unknown: dict[str, str], methods: MethodFacts) -> LayerFacts:
    files = [file for folder in FOLDERS for file in tree.files(folder) if _names_any(tree.text(file))]
    if not files:
        unknown["layers.iteration"] = "no file was seen that keeps the draft's layer names"
    sets = {name for file in files for name in _sets(tree.module(file))}
    iteration: dict[str, Literal["sorted", "unsorted"]] = {}
    for file in files:
        orders = set(_orders(tree.module(file), sets))
        if orders:
            iteration[file] = "unsorted" if "unsorted" in orders else "sorted"
    return LayerFacts(iteration, read_windowed(tree, methods), read_past_lists(tree, methods), read_cut_lists(tree))


def _names_any(text: str | None) -> bool:
    return any(name in (text or "") for name in NAMES)


def _is_names(node: ast.AST) -> bool:
    """``self._draft_attn_layer_names`` and its like; the target's layers are not the draft's."""
    return isinstance(node, ast.Attribute) and node.attr.endswith(NAMES) and "target" not in node.attr


def _sets(module: ast.Module | None) -> Iterator[str]:
    """Attributes that hold the names as a set, or as a list made of one (which keeps the set's order)."""
    for function in walk(module, ast.FunctionDef) if module else ():
        assigned = {
            node.targets[0].id: node.value
            for node in walk(function, ast.Assign)
            if isinstance(node.targets[0], ast.Name)
        }
        for node in walk(function, ast.Assign):
            target = node.targets[0]
            if _is_names(target) and _is_set(node.value, assigned):
                yield str(getattr(target, "attr", ""))


def _is_set(node: ast.expr, assigned: dict[str, ast.expr], depth: int = 4) -> bool:
    if isinstance(node, ast.Name) and node.id in assigned and depth:
        return _is_set(assigned[node.id], assigned, depth - 1)
    if isinstance(node, ast.BinOp):  # a difference of key views or sets is a set
        return isinstance(node.op, ast.Sub)
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        if name in {"list", "tuple"} and node.args:
            return _is_set(node.args[0], assigned, depth - 1)
        return name in {"set", "frozenset"}
    return isinstance(node, ast.Set | ast.SetComp)


def _orders(module: ast.Module | None, sets: set[str]) -> Iterator[str]:
    """ "sorted" or "unsorted" for each place where a first one is picked or names are put into an order."""
    for loop in walk(module, ast.For) if module else ():
        if isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "sorted":
            if any(_is_names(node) for node in walk(loop.iter, ast.Attribute)):
                yield "sorted"
        elif _is_names(loop.iter) and getattr(loop.iter, "attr", None) in sets and _orders_something(loop):
            yield "unsorted"
    for node in walk(module, ast.Subscript) if module else ():
        first = literal(node.slice) == 0 and isinstance(node.ctx, ast.Load)
        if first and _is_names(node.value) and getattr(node.value, "attr", None) in sets:
            yield "unsorted"
    yield from ["unsorted"] * sum(_first_of_set(call, sets) for call in _untested(module))


def _untested(module: ast.Module | None) -> Iterator[ast.Call]:
    """Calls whose result is not just compared: ``next(iter(names)) in mapping`` asks about any of them."""
    tested = {node.left for node in walk(module, ast.Compare)} if module else set()
    yield from (call for call in walk(module, ast.Call) if call not in tested) if module else ()


def _first_of_set(call: ast.Call, sets: set[str]) -> bool:
    """``next(iter(self.names))``."""
    inner = call.args[0] if dotted(call.func) == "next" and call.args else None
    if not (isinstance(inner, ast.Call) and dotted(inner.func) == "iter" and inner.args):
        return False
    return _is_names(inner.args[0]) and getattr(inner.args[0], "attr", None) in sets


def _orders_something(loop: ast.For) -> bool:
    """Names are appended, or the first of a kind is kept (``if key not in groups: groups[key] = …``)."""
    appends = any(getattr(call.func, "attr", None) == "append" for call in walk(loop, ast.Call))
    keeps_first = any(isinstance(test.ops[0], ast.NotIn) for test in walk(loop, ast.Compare))
    return appends or keeps_first or any(True for _ in walk(loop, ast.Break))
