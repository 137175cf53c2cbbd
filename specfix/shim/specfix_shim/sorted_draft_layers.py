"""Draft layers in sorted order where their set is iterated, so that it is the same in every process.

The names are strings in a set, whose order follows PYTHONHASHSEED; the first one decides which backend's block size and
metadata builder the draft works with.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from .changes import ABSENT, Change, Plan
from .inspection import assignments, own_classes, text, tree
from .log import LEFT, Inert, guarded

PATCH = "sorted_draft_layers"
NAMES = ("attn_layer_names", "indexer_layer_names")


class SortedSet(set[Any]):
    """A set that is iterated in order."""

    def __iter__(self) -> Iterator[Any]:
        try:
            return iter(sorted(super().__iter__()))
        except TypeError:  # of what has no order
            return super().__iter__()


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
            raise self._absent(instance) from None

    def __set__(self, instance: Any, value: Any) -> None:
        with guarded(PATCH, LEFT):
            if isinstance(value, list):
                value = sorted(value)
            elif isinstance(value, (set, frozenset)):
                value = SortedSet(value)
        vars(instance)[self.name] = value

    def __delete__(self, instance: Any) -> None:
        try:
            del vars(instance)[self.name]
        except KeyError:
            raise self._absent(instance) from None

    def _absent(self, instance: Any) -> AttributeError:
        return AttributeError(f"{type(instance).__name__!r} object has no attribute {self.name!r}")


def plan(module: Any, settings: dict[str, Any]) -> Plan:
    """Act on the classes of this module and, where it is the general proposer's, on their bases."""
    own = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    general = module.__name__.endswith(".eagle")
    classes = {base: None for each in own for base in (own_classes(each) if general else [each])}
    found = [(cls, attribute) for cls in classes for attribute in _unsorted(cls) if _is_free(cls, attribute)]
    if found or not general:
        names = ", ".join(f"{cls.__name__}.{attribute}" for cls, attribute in found)
        return [Change(*each, InOrder(each[1])) for each in found], names and f"in sorted order: {names}"
    raise Inert("the proposer iterates no set of layer names, or sorts it")


def _is_free(cls: type, attribute: str) -> bool:
    """Whether instances keep the attribute in their own dict, and the class has nothing by its name."""
    return cls.__dictoffset__ != 0 and inspect.getattr_static(cls, attribute, ABSENT) is ABSENT


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
