"""Auxiliary hidden states as model classes handle them: the default layers, the last one, and ``fc``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specfix.engines.readers.aux_places import Reader, Value
from specfix.engines.source.classes import Lineage
from specfix.engines.source.tree import dotted, literal, walk

RECORD = "_maybe_add_hidden_state"
LAYERS = "aux_hidden_state_layers"


def formula(function: ast.FunctionDef) -> tuple[tuple[str, ...], str] | None:
    """``(2, n // 2, n - 3)`` with ``n = len(self.model.layers)`` as terms of L, and what L is."""
    assigned = {
        node.targets[0].id: node.value
        for node in walk(function, ast.Assign)
        if isinstance(node.targets[0], ast.Name) and _is_count(node.value)
    }
    counts = {ast.unparse(value) for value in assigned.values()}
    returns = [node.value for node in walk(function, ast.Return) if isinstance(node.value, ast.Tuple)]
    if len(returns) != 1:
        return None

    class Named(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if (isinstance(node, ast.Name) and node.id in assigned) or _is_count(node):
                counts.update({ast.unparse(node)} if _is_count(node) else set())
                return ast.Name("L")
            return self.generic_visit(node)

    terms = [Named().visit(term) for term in returns[0].elts]
    if any(name.id != "L" for term in terms for name in walk(term, ast.Name)):
        return None
    return tuple(ast.unparse(term).replace(" ", "") for term in terms), next(iter(sorted(counts)), "")


def _is_count(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return True
    return isinstance(node, ast.Attribute) and node.attr == "num_hidden_layers"


def final_layer(lineage: Lineage | None) -> bool | None:
    """Whether the model's loop also records the output of its last layer, which is the id L.

    States are recorded before layer ``i`` under ``i`` (L is then out of reach, unless asked for after the
    loop) or after it under ``i + 1``.
    """
    indices = list(_recorded(lineage)) if lineage else []
    if not indices:
        return None
    return any(_reaches_end(index) for index in indices)


def records(lineage: Lineage) -> bool | None:
    """Whether the model gives auxiliary states at all. False: its ``forward`` is known, and has none."""
    forward = list(_chain(lineage, "forward"))
    if any("aux" in ast.unparse(function) for function in forward):
        return True
    return False if forward and lineage.complete else None


def records_outputs(setter: ast.FunctionDef) -> bool:
    """Whether the setter has the outputs of layers recorded, the layer before each id: ``names[layer - 1]``."""
    loops = {loop.target.id for loop in walk(setter, ast.For) if isinstance(loop.target, ast.Name)}
    before = [
        node.slice
        for node in walk(setter, ast.Subscript)
        if isinstance(node.slice, ast.BinOp) and getattr(node.slice.left, "id", None) in loops
    ]
    recorders = [call for call in walk(setter, ast.Call) if dotted(call.func) == "OutputRecorder"]
    return bool(recorders) and any(isinstance(each.op, ast.Sub) and literal(each.right) == 1 for each in before)


def _recorded(lineage: Lineage) -> Iterator[ast.expr]:
    """The layer indices under which the methods of a model record states."""
    names = {name for owner in lineage.classes for name in owner.members()} - {RECORD}
    for function in (function for name in sorted(names) for function in _chain(lineage, name)):
        for node in walk(function, ast.Compare):
            if isinstance(node.ops[0], ast.In) and getattr(node.comparators[0], "attr", None) == LAYERS:
                yield node.left
        for call in walk(function, ast.Call):
            if getattr(call.func, "attr", None) == RECORD and len(call.args) > 1:
                yield call.args[1]


def _chain(lineage: Lineage, name: str) -> Iterator[ast.FunctionDef]:
    """The method that runs, and the inherited ones that it calls in turn."""
    for owner in lineage.classes:
        function = owner.members().get(name)
        if isinstance(function, ast.FunctionDef):
            yield function
            if f"super().{name}(" not in ast.unparse(function):
                return


def _reaches_end(index: ast.expr) -> bool:
    if isinstance(index, ast.BinOp):
        return isinstance(index.op, ast.Add) and literal(index.right) == 1
    return getattr(index, "attr", None) == "end_layer" or _is_count(index)


def fc_states(lineage: Lineage) -> tuple[str, ...] | None:
    """Where the number of states that the draft's ``fc`` takes comes from: ``input_size=hidden_size * n``."""
    for owner in lineage.classes:
        function = owner.members().get("__init__")
        if isinstance(function, ast.FunctionDef):
            found = _factor(function)
            if found is not None:
                return found
    return None


def _factor(function: ast.FunctionDef) -> tuple[str, ...] | None:
    values: dict[str, list[ast.expr]] = {}
    for node in sorted(walk(function, ast.Assign), key=lambda assign: assign.lineno):
        values.setdefault(ast.unparse(node.targets[0]), []).append(node.value)
    for call in values.get("self.fc", []):
        if not isinstance(call, ast.Call):
            continue
        sizes = [keyword.value for keyword in call.keywords if keyword.arg == "input_size"] or call.args[:1]
        for product in (product for size in sizes for product in _products(size, values)):
            if isinstance(product.right, ast.Constant):
                return (str(product.right.value),)
            places = _count(ast.unparse(product.right), values)
            if places:
                return tuple(places)
    return None


def _products(size: ast.expr, values: dict[str, list[ast.expr]]) -> Iterator[ast.BinOp]:
    """The products that ``size`` may stand for, be it written as one or as a name."""
    for value in [size, *values.get(ast.unparse(size), [])]:
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            yield value


def _count(name: str, values: dict[str, list[ast.expr]], depth: int = 3) -> list[str]:
    """Places of a number, by its assignments: each fills in where the one before found nothing."""
    reader = Reader()
    env: dict[str, Value] = {}
    for key, assigned in values.items():
        for value in assigned[:1]:
            read = reader.value(value, env)
            if read is not None:
                env[key] = read
    found: list[str] = []
    for value in values.get(name, []):
        if isinstance(value, ast.Name | ast.Attribute) and depth and ast.unparse(value) in values:
            found += _count(ast.unparse(value), values, depth - 1)
            continue
        chosen = value
        if isinstance(value, ast.IfExp) and isinstance(value.body, ast.Call):  # len(ids) if ids else 3
            chosen = value.body.args[0] if value.body.args else value
        read = reader.value(chosen, env)
        keys = [read] if isinstance(read, str) else [key for key, _ in read or []]
        found += [f"len({key})" if chosen is not value else key for key in keys if key]
        if isinstance(value, ast.IfExp) and literal(value.orelse) is not None:
            found.append(str(literal(value.orelse)))
    return list(dict.fromkeys(found))
