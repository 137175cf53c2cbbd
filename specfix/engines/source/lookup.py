"""What a name of a file stands for in the whole tree: a constant, a class, a member of an enum, a config's field."""

from __future__ import annotations

import ast

from specfix.engines.source.classes import PACKAGE
from specfix.engines.source.imports import absolute, file_of, imported
from specfix.engines.source.tree import SourceTree, literal, walk


def module_constant(tree: SourceTree, file: str, name: str) -> object:
    """Literal value of a constant of the module, or of the module of the tree that it is imported from."""
    value = tree.assigned(file, name)
    if value is not None:
        return literal(value)
    origin = imported_from(tree, file, name)
    return module_constant(tree, origin, name) if origin and origin != file and name.isupper() else None


def imported_from(tree: SourceTree, file: str, name: str) -> str | None:
    """The file of the tree that ``file`` imports ``name`` from."""
    module = tree.module(file)
    for node in walk(module, ast.ImportFrom) if module else ():
        if name in imported(node):
            head, _, rest = absolute(PACKAGE, file, node).partition(".")
            if head not in {PACKAGE, tree.package.name}:
                return None
            found = file_of(tree, rest)
            if found is not None:
                return found
    return None


def defined_in(tree: SourceTree, file: str, name: str) -> str | None:
    """The file that defines class ``name`` as ``file`` knows it, through re-exports."""
    for _ in range(4):
        module = tree.module(file)
        if module and any(isinstance(node, ast.ClassDef) and node.name == name for node in module.body):
            return file
        origin = imported_from(tree, file, name)
        if origin is None or origin == file:
            return None
        file = origin
    return None


def enum_member(tree: SourceTree, file: str, cls: str, member: str) -> object:
    """Literal value of ``cls.member``."""
    home = defined_in(tree, file, cls)
    node = tree.class_(home, cls) if home else None
    for assign in node.body if node else ():
        if isinstance(assign, ast.Assign) and any(isinstance(t, ast.Name) and t.id == member for t in assign.targets):
            return literal(assign.value)
    return None


def config_class(tree: SourceTree, file: str, owner: str, name: str) -> tuple[str, str] | None:
    """File and name of the config class that is the type of field ``name`` (dotted) of class ``owner``."""
    for part in name.split("."):
        node = tree.class_(file, owner)
        annotation = fields_of(node).get(part) if node else None
        candidates = [n.id for n in ast.walk(annotation.annotation) if isinstance(n, ast.Name)] if annotation else []
        found = next(
            ((home, c) for c in candidates if c.endswith("Config") and (home := defined_in(tree, file, c))),
            None,
        )
        if found is None:
            return None
        file, owner = found
    return file, owner


def fields_of(node: ast.ClassDef) -> dict[str, ast.AnnAssign]:
    """The annotated fields of a class body."""
    return {n.target.id: n for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
