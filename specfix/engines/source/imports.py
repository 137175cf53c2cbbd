"""What the import statements of a source bind, and which files they lead to."""

from __future__ import annotations

import ast

from specfix.engines.source.tree import SourceTree


def imported(statement: ast.stmt) -> list[str]:
    """The names that an import binds; none for any other statement."""
    if isinstance(statement, ast.ImportFrom):
        return [alias.asname or alias.name for alias in statement.names]
    if isinstance(statement, ast.Import):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    return []


def absolute(package: str, file: str, statement: ast.ImportFrom) -> str:
    """The dotted name of the module that ``file`` of ``package`` imports from."""
    if not statement.level:
        return statement.module or ""
    folder = [package, *file.split("/")[:-1]]
    folder = folder[: len(folder) - statement.level + 1]
    return ".".join([*folder, *([statement.module] if statement.module else [])])


def file_of(tree: SourceTree, module: str) -> str | None:
    """The file of a module, whose dotted name is without that of the package; None where it is not in the tree."""
    path = module.replace(".", "/")
    for file in (f"{path}.py", f"{path}/__init__.py") if path else ("__init__.py",):
        if tree.module(file) is not None:
            return file
    return None
