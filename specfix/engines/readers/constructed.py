"""Which code runs when a model's class is made: its ``__init__`` and those of the parts that it makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from specfix.engines.source.classes import Class, Classes
from specfix.engines.source.tree import SourceTree, dotted, walk

MODELS = ("model_executor/models/", "models/")  # where classes of models stand; layers are elsewhere
MOST = 60  # classes that are followed


@dataclass(frozen=True, slots=True)
class Function:
    """One function that runs, and its file."""

    file: str
    node: ast.FunctionDef


@dataclass(frozen=True, slots=True)
class Built:
    """``own``: the file of the model's class, and the folder's beside it where the class only stands in another's
    place."""

    own: tuple[str, ...]
    functions: tuple[Function, ...]


def constructed(classes: Classes, tree: SourceTree, cls: Class) -> Built:
    """All that runs in the making of ``cls``, as far as the source tells."""
    seen: dict[int, Function] = {}
    waiting, made = [cls], {id(cls.node)}
    while waiting and len(made) < MOST:
        each = waiting.pop(0)
        for function in _functions(classes, tree, each):
            seen.setdefault(id(function.node), function)
            for part in (*_parts(classes, function), *_named(classes, each, function)):
                if id(part.node) not in made and part.file.startswith(MODELS):
                    made.add(id(part.node))
                    waiting.append(part)
    return Built((cls.file,), tuple(seen.values()))


def _functions(classes: Classes, tree: SourceTree, cls: Class) -> Iterator[Function]:
    """``__init__``, those that it hands on to, and the methods and functions of the same file that they call."""
    lineage = classes.lineage(cls)
    chain = [c for c in lineage.classes if isinstance(c.members().get("__init__"), ast.FunctionDef)]
    waiting: list[Function] = []
    for owner in chain:
        node = owner.members()["__init__"]
        assert isinstance(node, ast.FunctionDef)
        waiting.append(Function(owner.file, node))
        if not any(_hands_on(call) for call in walk(node, ast.Call)):
            break
    done: set[int] = set()
    while waiting:
        function = waiting.pop(0)
        if id(function.node) in done:
            continue
        done.add(id(function.node))
        yield function
        for call in walk(function.node, ast.Call):
            name = dotted(call.func) or ""
            if name.startswith("self.") and name.count(".") == 1:
                found = lineage.method(name.removeprefix("self."))
                if found:
                    waiting.append(Function(found[0].file, found[1]))
            elif name and "." not in name:
                module = tree.module(function.file)
                tops = [n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == name] if module else []
                waiting += [Function(function.file, node) for node in tops[-1:]]


def _hands_on(call: ast.Call) -> bool:
    """``super().__init__(…)`` of a model's own base."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "__init__" and "super()" in ast.unparse(call.func)


def _named(classes: Classes, cls: Class, function: Function) -> Iterator[Class]:
    """What a class names in its body and makes by that name: ``model_cls = Inner``, ``self.model_cls(…)``."""
    lineage = classes.lineage(cls)
    for call in walk(function.node, ast.Call):
        name = dotted(call.func) or ""
        found = lineage.find(name.removeprefix("self.")) if name.startswith("self.") and name.count(".") == 1 else None
        value = getattr(found[1], "value", None) if found else None
        if found and isinstance(value, ast.Name):
            yield from (part for part in classes.of_expression(found[0].file, value) if part is not None)


def _parts(classes: Classes, function: Function) -> Iterator[Class]:
    """Classes that a function makes objects of, or hands to what makes them."""
    for call in walk(function.node, ast.Call):
        for expression in (call.func, *(word.value for word in call.keywords)):
            name = dotted(expression) or ""
            if name.rpartition(".")[2][:1].isupper():
                yield from (cls for cls in classes.of_expression(function.file, expression) if cls is not None)
