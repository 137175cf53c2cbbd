"""Read an engine's source without importing it: modules, classes and functions by ``ast``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeVar

MAX_FILE = 8 << 20  # bytes; no module of an engine comes near, and a hostile tree must not fill memory

Node = TypeVar("Node", bound=ast.AST)


class SourceTree:
    """The package folder of an engine (``…/vllm``). Every file is read and parsed once."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self._modules: dict[str, ast.Module | None] = {}
        self._texts: dict[str, str | None] = {}

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
        module = self.module(file)
        return None if module is None else find_function(module, name)

    def class_(self, file: str, name: str) -> ast.ClassDef | None:
        """The class called ``name`` in ``file``."""
        module = self.module(file)
        if module is None:
            return None
        return next((node for node in walk(module, ast.ClassDef) if node.name == name), None)

    @cached_property
    def version(self) -> str | None:
        """Version as the tree states it (``_version.py``), or None."""
        module = self.module("_version.py")
        for node in walk(module, ast.Assign) if module else ():
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            if names & {"__version__", "version"} and isinstance(node.value, ast.Constant):
                return str(node.value.value)
        return None


def walk(tree: ast.AST, kind: type[Node]) -> Iterator[Node]:
    """All nodes of one kind under ``tree``, in source order."""
    for node in ast.walk(tree):
        if isinstance(node, kind):
            yield node


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


def dotted(node: ast.AST) -> str | None:
    """``a.b.c`` of a name or attribute chain, or None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else None
    return None
