"""What a name of the source stands for: scopes, the modules that they end in, and who imports what from where."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from specfix.engines.source.classes import PACKAGE
from specfix.engines.source.imports import absolute, file_of, imported
from specfix.engines.source.interpreter.standins import Names, UndecidedError, Unknown, outside
from specfix.engines.source.tree import SourceTree, dotted

# of the source, but of no use here
QUIET: Mapping[str, Any] = {
    "init_logger": lambda *_: Unknown("a log"),
    "get_attr_docs": lambda *_: defaultdict(str),
    "load_general_plugins": lambda: None,
    "current_platform": Unknown("it depends on the platform"),
}
LAZY = "LazyLoader"  # vLLM's stand-in for a module that is imported later
MUTATORS = frozenset({"append", "extend", "update", "add", "pop", "remove", "clear", "insert", "setdefault"})


class Runner(Protocol):
    """Runs what stands behind a name when it is asked for."""

    @property
    def builtins(self) -> Mapping[str, Any]:
        """The names that every module has."""

    def bind(self, statement: ast.stmt, name: str, scope: Scope) -> Any:
        """What ``statement`` binds ``name`` to."""

    def holds(self, test: ast.expr, scope: Scope) -> bool:
        """Whether a test holds. UndecidedError where that cannot be told."""

    def call(self, body: ast.expr | list[ast.stmt], scope: Scope, given: tuple[Any, ...]) -> Any:
        """What a function of this body returns, whose arguments are bound in ``scope``."""


class Scope:
    """Names that are bound, inside others."""

    def __init__(self, parent: Scope | Module, names: dict[str, Any] | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Any] = names if names is not None else {}

    @property
    def module(self) -> Module:
        return self.parent if isinstance(self.parent, Module) else self.parent.module

    def get(self, name: str) -> Any:
        return self.names[name] if name in self.names else self.parent.get(name)


class _NoNameError(UndecidedError):
    """A module has no such global name."""


class Module:
    """A file of the source. A name is worked out when it is first asked for."""

    def __init__(self, modules: Modules, runner: Runner, name: str, file: str, tree: ast.Module) -> None:
        self._modules, self._runner = modules, runner
        self.name, self.file = name, file
        self._values: dict[str, Any] = {"__name__": name}
        self._bound: dict[str, list[tuple[ast.stmt, tuple[tuple[ast.expr, bool], ...]]]] = {}
        self._changed: set[str] = set()
        self._pending: set[str] = set()
        self._index(tree.body, ())

    def _index(self, body: list[ast.stmt], tests: tuple[tuple[ast.expr, bool], ...]) -> None:
        for statement in body:
            if isinstance(statement, ast.If):
                self._index(statement.body, (*tests, (statement.test, True)))
                self._index(statement.orelse, (*tests, (statement.test, False)))
            elif isinstance(statement, ast.Try):
                self._index(statement.body + statement.orelse, tests)
            elif isinstance(statement, ast.With):
                self._index(statement.body, tests)
            else:
                for name in binds(statement):
                    self._bound.setdefault(name, []).append((statement, tests))
                self._changed.update(_changes(statement))

    def binds(self, name: str) -> bool:
        return name in self._bound

    def get(self, name: str) -> Any:
        """The value of a global name. UndecidedError where it has none."""
        if name not in self._values:
            if name in self._pending:
                raise UndecidedError(f"{name} in {self.file} needs itself")
            self._pending.add(name)
            try:
                self._values[name] = self._work_out(name)
            finally:
                self._pending.discard(name)
        return self._values[name]

    def _work_out(self, name: str) -> Any:
        if name in QUIET:
            return QUIET[name]
        if name == LAZY:
            return lambda *given: self._modules.any(given[-1])
        for statement, tests in reversed(self._bound.get(name, [])):
            if not all(self._runner.holds(test, Scope(self)) is wanted for test, wanted in tests):
                continue
            if name in self._changed:
                return Unknown(f"{name} of {self.file} is changed after it is made")
            value = self._runner.bind(statement, name, Scope(self))
            if isinstance(value, dict | list | set) and not value:
                return Unknown(f"{name} of {self.file} is filled while the engine runs")
            return value
        if name in self._runner.builtins:
            return self._runner.builtins[name]
        for statement, _ in self._bound.get("*", []):
            other = self._modules.own(self.absolute(statement)) if isinstance(statement, ast.ImportFrom) else None
            if other is not None and other.binds(name):
                return other.get(name)
        raise _NoNameError(f"no {name} in {self.file}")

    def attribute(self, name: str) -> Any:
        """The same as others see it: also a module inside this one, or what ``__getattr__`` gives."""
        try:
            return self.get(name)
        except _NoNameError:
            own = self._modules.own(f"{self.name}.{name}")
            if own is None and not self.binds("__getattr__"):
                raise
        return own or self.get("__getattr__")(name)

    def absolute(self, statement: ast.ImportFrom) -> str:
        """The dotted name of the module that a statement of this one imports from."""
        return absolute(PACKAGE, self.file, statement)


class Modules:
    """All modules: those of the source tree, and ``python``, of Python's own."""

    def __init__(self, tree: SourceTree, python: dict[str, Names], runner: Runner) -> None:
        self._tree = tree
        self._runner = runner
        self._own: dict[str, Module | None] = {}
        self._python = python
        python["sys"].names["modules"] = _Loaded(self)

    def own(self, name: str) -> Module | None:
        """The module of this dotted name, of the source tree."""
        if name not in self._own:
            head, _, rest = name.partition(".")
            file = file_of(self._tree, rest) if head == PACKAGE else None
            tree = self._tree.module(file) if file else None
            self._own[name] = Module(self, self._runner, name, file, tree) if file and tree else None
        return self._own[name]

    def any(self, name: str) -> Any:
        """The module of this dotted name, whosever it is."""
        return self.own(name) or self._python.get(name) or outside(name)

    def member(self, module: str, name: str) -> Any:
        """What ``from module import name`` gives."""
        if module.partition(".")[0] == PACKAGE:
            own = self.own(module)
            if own is None:
                return self.own(f"{module}.{name}") or Unknown(f"no {module}")
            return own.attribute(name)
        if module in self._python:
            return self._python[module].get(name)
        return outside(f"{module}.{name}")


class _Loaded(dict[str, Any]):
    """``sys.modules``: the source's own are there when they are asked for, and nothing is loaded besides."""

    def __init__(self, modules: Modules) -> None:
        super().__init__()
        self._modules = modules

    def __missing__(self, name: str) -> Any:
        return self._modules.any(name)


def binds(statement: ast.stmt) -> list[str]:
    """Names that a statement binds; ``*`` for whatever a module has."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return imported(statement)
    if isinstance(statement, ast.AugAssign):
        return []
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    nodes = (node for target in targets if target is not None for node in ast.walk(target))
    return [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _changes(statement: ast.stmt) -> Iterator[str]:
    """Names whose values a statement of a module changes."""
    for node in [] if isinstance(statement, ast.FunctionDef | ast.ClassDef) else ast.walk(statement):
        if isinstance(node, ast.AugAssign):
            yield dotted(node.target) or ""
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            yield dotted(node.value) or ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            yield dotted(node.func.value) or ""
