"""Read an engine's source without importing it: modules, classes and functions by ``ast``."""

from __future__ import annotations

import ast
import gc
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

MAX_FILE = 8 << 20  # bytes; no module of an engine comes near, and a hostile tree must not fill memory

Node = TypeVar("Node", bound=ast.AST)


class SourceTree:
    """The package folder of an engine (``…/vllm``). Every file is read and parsed once."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self._modules: dict[str, ast.Module | None] = {}
        self._texts: dict[str, str | None] = {}
        self._functions: dict[tuple[str, str], ast.FunctionDef | None] = {}
        self._classes: dict[tuple[str, str], ast.ClassDef | None] = {}
        self._assigned: dict[str, dict[str, ast.expr | None]] = {}

    def text(self, file: str) -> str | None:
        """Text of ``file`` (relative to the package, with slashes), or None where it is absent or unreadable."""
        if file not in self._texts:
            path = self.package / file
            try:
                fit = path.is_file() and path.stat().st_size <= MAX_FILE  # a pipe would block
                self._texts[file] = path.read_text("utf-8") if fit else None
            except (OSError, UnicodeDecodeError):
                self._texts[file] = None
        return self._texts[file]

    def module(self, file: str) -> ast.Module | None:
        """The parsed ``file``, or None where there is none or it is not Python."""
        if file not in self._modules:
            text = self.text(file)
            try:
                with warnings.catch_warnings():  # of the engine's own spelling, such as "\d"
                    warnings.simplefilter("ignore")
                    self._modules[file] = None if text is None else ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._modules[file] = None
        return self._modules[file]

    def files(self, folder: str = "") -> Iterator[str]:
        """Python files under ``folder``, relative to the package, sorted."""
        root = self.package / folder
        for path in sorted(root.rglob("*.py")):
            yield path.relative_to(self.package).as_posix()

    def function(self, file: str, name: str) -> ast.FunctionDef | None:
        """The function or method called ``name`` (``Class.method`` to be exact) in ``file``; the last definition."""
        if (file, name) not in self._functions:
            module = self.module(file)
            self._functions[file, name] = None if module is None else find_function(module, name)
        return self._functions[file, name]

    def class_(self, file: str, name: str) -> ast.ClassDef | None:
        """The class called ``name`` in ``file``."""
        if (file, name) not in self._classes:
            module = self.module(file)
            nodes = walk(module, ast.ClassDef) if module else ()
            self._classes[file, name] = next((node for node in nodes if node.name == name), None)
        return self._classes[file, name]

    def assigned(self, file: str, name: str) -> ast.expr | None:
        """What the top level of ``file`` last assigns to ``name``; None where it does not, or adds to it."""
        if file not in self._assigned:
            self._assigned[file] = dict(_assignments(self.module(file)))
        return self._assigned[file].get(name)

    def config_file(self, cls: str) -> str | None:
        """The file that defines the config class ``cls``."""
        own = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.removesuffix("Config")).lower()
        for file in config_homes(own):
            if f"class {cls}" in (self.text(file) or "") and self.class_(file, cls):
                return file
        return None

    @cached_property
    def version(self) -> str | None:
        """Version as the tree states it (``_version.py``), or None."""
        module = self.module("_version.py")
        for node in walk(module, ast.Assign) if module else ():
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            if names & {"__version__", "version"} and isinstance(node.value, ast.Constant):
                return str(node.value.value)
        return None


def config_homes(part: str) -> tuple[str, ...]:
    """The files that may define the config of one part of the engine: its own, or the one that held them all once."""
    return f"config/{part}.py", "config/__init__.py", "config.py"


_KINDS = [kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST)]
_PLAIN = {"attr", "arg", "name", "asname", "ctx", "op", "ops"}  # no nodes, or contexts (Load, Store) and operators
_BLOCKS = {"body", "orelse", "handlers", "finalbody", "cases"}
# the fields in which a node holds other nodes, and those that lead to statements, which no expression holds
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: () if issubclass(kind, ast.Constant | ast.Name) else tuple(f for f in kind._fields if f not in _PLAIN)
    for kind in _KINDS
}
_TO_STATEMENTS: dict[type, tuple[str, ...]] = {
    kind: () if issubclass(kind, ast.expr) else tuple(f for f in kind._fields if f in _BLOCKS) for kind in _KINDS
}


# what walk() found in a module: readers ask the same of the same ones again and again
_walked: WeakKeyDictionary[ast.Module, dict[type, list[Any]]] = WeakKeyDictionary()


def walk(tree: ast.AST, kind: type[Node]) -> Iterator[Node]:
    """All nodes of one kind under ``tree``, the outer ones first, in source order where they are equally deep."""
    if not isinstance(tree, ast.Module):
        return _walk(tree, kind)
    walked = _walked.setdefault(tree, {})
    if kind not in walked:
        walked[kind] = list(_walk(tree, kind))
    return iter(walked[kind])


def _walk(tree: ast.AST, kind: type[Node]) -> Iterator[Node]:
    fields = _TO_STATEMENTS if issubclass(kind, ast.stmt) else _FIELDS
    level = [tree]
    while level:
        below: list[ast.AST] = []
        for node in level:
            if isinstance(node, kind):
                yield node
            for field in fields.get(type(node), ()):  # of a list's None and str, too: they hold nothing
                value = getattr(node, field, None)
                if isinstance(value, list):
                    below += value
                elif value is not None:
                    below.append(value)
        level = below


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without Python's cyclic garbage collector: it would go through millions of syntax nodes, which form no cycles,
    again and again, and take longer than the reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _assignments(module: ast.Module | None) -> Iterator[tuple[str, ast.expr | None]]:
    for node in module.body if module else ():
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value if isinstance(node, ast.AnnAssign) else None


def find_function(tree: ast.AST, name: str) -> ast.FunctionDef | None:
    """The last function called ``name`` under ``tree``; ``Class.method`` looks in that class alone."""
    owner, _, method = name.rpartition(".")
    scope: ast.AST | None = tree
    if owner:
        scope = next((node for node in walk(tree, ast.ClassDef) if node.name == owner), None)
    found = None
    for node in walk(scope, ast.FunctionDef) if scope else ():
        if node.name == method:
            found = node  # overloads come first; the last one has the body
    return found


def literal(node: ast.AST | None) -> object:
    """Value of a literal expression, ``frozenset({...})`` and ``set([...])`` included; None where it is none."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"frozenset", "set", "tuple", "list"}
    ):
        node = node.args[0] if node.args else None
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def plain(value: object) -> object:
    """A literal as conditions hold it: with lists for tuples and sets."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def dotted(node: ast.AST) -> str | None:
    """``a.b.c`` of a name or attribute chain, or None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else None
    return None
