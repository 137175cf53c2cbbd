"""Draft layers in sorted order where their set is iterated, so that it is the same in every process.

The names are strings in a set, whose order follows PYTHONHASHSEED; the first one decides which backend's block size and
metadata builder the draft works with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from .inspection import assignments, own_classes, text, tree
from .log import Inert

NAMES = ("attn_layer_names", "indexer_layer_names")


class SortedSet(set[Any]):
    """A set that is iterated in order."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__()))


class InOrder:
    """An attribute that puts what it is given in order."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        try:
            return vars(instance)[self.name]
        except KeyError:
            raise AttributeError(self.name) from None

    def __set__(self, instance: Any, value: Any) -> None:
        if isinstance(value, list):
            value = sorted(value)
        elif isinstance(value, (set, frozenset)):
            value = SortedSet(value)
        vars(instance)[self.name] = value


def apply(module: Any, settings: dict[str, Any]) -> str:
    """Act on the classes of this module and, where it is the general proposer's, on their bases."""
    own = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    general = module.__name__.endswith(".eagle")
    classes = {base: None for each in own for base in (own_classes(each) if general else [each])}
    found = [(cls, attribute) for cls in classes for attribute in _unsorted(cls)]
    for cls, attribute in found:
        if not isinstance(vars(cls).get(attribute), InOrder):
            setattr(cls, attribute, InOrder(attribute))
    if found:
        return "in sorted order: " + ", ".join(f"{cls.__name__}.{attribute}" for cls, attribute in found)
    if general:
        raise Inert("the proposer iterates no set of layer names, or sorts it")
    return ""


def _unsorted(cls: type) -> list[str]:
    """Attributes that hold a set of layer names, or a list made of one, and whose order this class uses."""
    used = set()
    for node in ast.walk(tree(cls)):
        if isinstance(node, ast.For) and _is_names(node.iter):
            used.add(node.iter.attr)  # type: ignore[attr-defined]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_names(node.value):
            used.add(node.value.attr)  # type: ignore[attr-defined]
    return sorted(used & {name for base in own_classes(cls) for name in _made_of_sets(base)})


def _is_names(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr.endswith(NAMES) and "target" not in node.attr


def _made_of_sets(cls: type) -> Iterator[str]:
    for function in ast.walk(tree(cls)):
        if isinstance(function, ast.FunctionDef):
            local = {text(target): value for target, value in assignments(function)}
            for target, value in assignments(function):
                if _is_names(target) and _is_set(value, local):
                    yield target.attr  # type: ignore[attr-defined]


def _is_set(value: ast.AST, local: dict[str, ast.expr], depth: int = 4) -> bool:
    """A set expression, the difference of two, a list of either, or a local name for one."""
    if isinstance(value, ast.Name) and value.id in local and depth:
        return _is_set(local[value.id], local, depth - 1)
    if isinstance(value, ast.Call) and value.args and text(value.func) in {"list", "tuple"}:
        return _is_set(value.args[0], local, depth)
    if isinstance(value, ast.Call):
        return text(value.func) in {"set", "frozenset"}
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, ast.Sub)
    return isinstance(value, (ast.Set, ast.SetComp))
