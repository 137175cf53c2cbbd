"""Work out what a piece of an engine's source would make, without importing it.

A small interpreter of Python's syntax tree. It runs the source's own functions, so that a rule which changes from
release to release (how a hint becomes a flag) is not written down here a second time. What is not in the source
(another package, the platform, the machine) is :class:`Unknown`, or an :class:`Outside` name where only its identity
counts; what would be decided by such a value is unknown too.

A hostile tree gets at nothing: of Python itself there are only the names in ``standins``, which open, write and start
nothing; of any value only the attributes in ``access``; and a budget ends every loop.
"""

from __future__ import annotations

import argparse
import ast
import copy
import dataclasses
import enum
import operator
import re
import time
import types
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Any

from specfix.engines.comparisons import COMPARISONS
from specfix.engines.source.access import is_open, may_be_asked_for, of_base, of_instance
from specfix.engines.source.classes import PACKAGE
from specfix.engines.source.standins import (
    BUILTINS,
    Field,
    FieldInfo,
    Made,
    Names,
    Outside,
    UndecidedError,
    Unknown,
    modules,
    outside,
)
from specfix.engines.source.tree import SourceTree, dotted
from specfix.engines.source.words import COMPARED_BY

BUDGET = 20_000_000  # nodes
SECONDS = 30  # of this process's own time; a release takes two or three
MAX_BITS = 1 << 12  # of a number that is computed with
WIDE = re.compile(r"%[^a-zA-Z%]*(\d{4}|\*)")
MAX_DEPTH = 60  # calls inside calls
MAX_SIZE = 1 << 20  # of what Python's own functions and operators are asked to make
DATACLASS = frozenset({"dataclass", "config"})  # decorators; the second is vLLM's own
# of the source, but of no use here
QUIET: Mapping[str, Any] = {
    "init_logger": lambda *_: Unknown("a log"),
    "get_attr_docs": lambda *_: __import__("collections").defaultdict(str),
    "load_general_plugins": lambda: None,
    "current_platform": Unknown("it depends on the platform"),
}
LAZY = "LazyLoader"  # vLLM's stand-in for a module that is imported later
MUTATORS = frozenset({"append", "extend", "update", "add", "pop", "remove", "clear", "insert", "setdefault"})
# what asks for the value of its argument
OF_VALUES = frozenset({abs, all, any, bool, float, int, iter, len, list, max, min, repr, round, set, sorted, str, sum})
REAL_BASES = (argparse.Action, argparse.ArgumentParser, argparse._ArgumentGroup, BaseException, argparse.HelpFormatter)

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Leave(Exception):
    def __init__(self, again: bool) -> None:
        self.again = again


class _NoNameError(UndecidedError):
    """A module has no such global name."""


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


class ClassScope(Scope):
    """The body of a class: its members are worked out when they are asked for."""

    def __init__(self, parent: Scope | Module, cls: type) -> None:
        super().__init__(parent)
        self._cls = cls

    def get(self, name: str) -> Any:
        return getattr(self._cls, name) if name in members(self._cls) else self.parent.get(name)


class Module:
    """A file of the source. A name is worked out when it is first asked for."""

    def __init__(self, interpreter: Interpreter, name: str, file: str, tree: ast.Module) -> None:
        self.interpreter, self.name, self.file = interpreter, name, file
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
                for name in _binds(statement):
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
            return lambda *given: self.interpreter.any_module(given[-1])
        for statement, tests in reversed(self._bound.get(name, [])):
            if not all(self._holds(test) is wanted for test, wanted in tests):
                continue
            if name in self._changed:
                return Unknown(f"{name} of {self.file} is changed after it is made")
            value = self.interpreter.bind(statement, name, Scope(self))
            if isinstance(value, dict | list | set) and not value:
                return Unknown(f"{name} of {self.file} is filled while the engine runs")
            return value
        if name in self.interpreter.builtins:
            return self.interpreter.builtins[name]
        for statement, _ in self._bound.get("*", []):
            other = (
                self.interpreter.module(_absolute(self, statement)) if isinstance(statement, ast.ImportFrom) else None
            )
            if other is not None and other.binds(name):
                return other.get(name)
        raise _NoNameError(f"no {name} in {self.file}")

    def attribute(self, name: str) -> Any:
        """The same as others see it: also a module inside this one, or what ``__getattr__`` gives."""
        try:
            return self.get(name)
        except _NoNameError:
            own = self.interpreter.module(f"{self.name}.{name}")
            if own is None and not self.binds("__getattr__"):
                raise
        return own or self.get("__getattr__")(name)

    def _holds(self, test: ast.expr) -> bool:
        return self.interpreter.holds(test, Scope(self))


class Function:
    """A function or lambda of the source, to be called by anyone."""

    def __init__(self, interpreter: Interpreter, node: ast.FunctionDef | ast.Lambda, scope: Scope) -> None:
        self._interpreter, self.node, self.scope = interpreter, node, scope
        self.owner: type | None = None
        self.__name__ = getattr(node, "name", "<lambda>")
        self.__doc__ = None
        arguments = node.args
        self._defaults = [interpreter.evaluate(default, scope) for default in arguments.defaults]
        self._named = [d and interpreter.evaluate(d, scope) for d in arguments.kw_defaults]

    def __get__(self, instance: Any, _: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __deepcopy__(self, _: Any) -> Function:
        return self

    def __call__(self, *given: Any, **named: Any) -> Any:
        scope = Scope(self.scope, self._bind(given, named))
        if self.owner is not None and given:
            owner = self.owner
            scope.names["super"] = lambda *_: super(owner, given[0])
        return self._interpreter.call(self, scope, given)

    def _bind(self, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        arguments = self.node.args
        places = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        bound = dict(zip(places[len(places) - len(self._defaults) :], self._defaults, strict=True))
        bound |= {a.arg: d for a, d in zip(arguments.kwonlyargs, self._named, strict=True) if d is not None}
        bound |= {a.arg: None for a, d in zip(arguments.kwonlyargs, self._named, strict=True) if d is None}
        bound |= dict(zip(places, given, strict=False))
        known = {*places, *(argument.arg for argument in arguments.kwonlyargs)}
        bound |= {name: value for name, value in named.items() if name in known}
        if arguments.vararg:
            bound[arguments.vararg.arg] = given[len(places) :]
        elif len(given) > len(places):
            raise TypeError(f"{self.__name__}: too many arguments")
        rest = {name: value for name, value in named.items() if name not in known}
        if arguments.kwarg:
            bound[arguments.kwarg.arg] = rest
        elif rest:
            raise TypeError(f"{self.__name__} takes no {', '.join(rest)}")
        missing = [name for name in places if name not in bound]
        if missing:
            raise TypeError(f"{self.__name__} lacks {', '.join(missing)}")
        return bound


class SourceClass(Outside):
    """The type of the stand-ins for classes of the source. Their attributes are worked out when they are asked for."""

    node: ast.ClassDef
    scope: Scope | Module
    interpreter: Interpreter

    def __call__(cls, *given: Any, **named: Any) -> Any:
        if issubclass(cls, REAL_BASES):
            return type.__call__(cls, *given, **named)
        return Made(cls, given, named)

    def __getattr__(cls, name: str) -> Any:
        for owner in cls.__mro__:
            statement = members(owner).get(name)
            if isinstance(owner, SourceClass) and statement is not None:
                value = owner.interpreter.bind(statement, name, ClassScope(owner.scope, owner))
                if isinstance(value, FieldInfo):
                    if not value.from_dataclasses:
                        return Unknown(f"{owner.__name__}.{name} is made over by pydantic")
                    if value.default is dataclasses.MISSING:
                        raise AttributeError(name)
                    value = value.default
                elif isinstance(value, dict | list | set) and not value and not issubclass(cls, REAL_BASES):
                    value = Unknown(f"{owner.__name__}.{name} is filled while the engine runs")
                type.__setattr__(owner, name, value)
                return value
            if isinstance(owner, Outside) and not isinstance(owner, SourceClass) and not name.startswith("__"):
                return Unknown(f"{cls.__name__}.{name}: {owner.path} is not in this source")
        raise AttributeError(f"{cls.__name__} has no {name}")


class _Loaded(dict[str, Any]):
    """``sys.modules``: the source's own are there when they are asked for, and nothing is loaded besides."""

    def __init__(self, interpreter: Interpreter) -> None:
        super().__init__()
        self._interpreter = interpreter

    def __missing__(self, name: str) -> Any:
        return self._interpreter.any_module(name)


def members(cls: type) -> dict[str, ast.stmt]:
    """Names that the body of a class of the source binds."""
    found: dict[str, ast.stmt] = cls.__dict__.get("_members", {})
    return found


class Interpreter:
    """Runs parts of one source tree. ``environment`` holds the only environment variables that are set; ``document``
    is what every YAML file is read as."""

    def __init__(self, tree: SourceTree) -> None:
        self.environment: dict[str, str] = {}
        self.document: Any = None
        self._tree = tree
        self._own: dict[str, Module | None] = {}
        self._python = modules(self.environment)
        self._python["yaml"] = Names("yaml", {"safe_load": lambda *_: self.document})
        self._python["sys"].names["modules"] = _Loaded(self)
        self._python["dataclasses"].names.update(fields=self.fields, is_dataclass=self.is_dataclass)
        self._budget = BUDGET
        self._depth = 0
        self._ends = time.process_time() + SECONDS
        self.builtins = BUILTINS | {
            "getattr": self._getattr,
            "hasattr": self._hasattr,
            "setattr": self._setattr,
            "map": self._map,
            "filter": self._filter,
            "sorted": self._sorted,
            "min": partial(self._extreme, min),
            "max": partial(self._extreme, max),
            "iter": lambda values: iter(list(self._each(values))),
            "sum": self._sum,
        }
        self._of_values = OF_VALUES | {self.builtins[name] for name in ("sorted", "min", "max", "iter", "sum")}

    # names

    def module(self, name: str) -> Module | None:
        """The module of this dotted name, of the source tree."""
        if name not in self._own:
            head, _, rest = name.partition(".")
            path = rest.replace(".", "/")
            files = (f"{path}.py", f"{path}/__init__.py") if rest else ("__init__.py",)
            self._own[name] = None
            for file in files if head == PACKAGE else ():
                tree = self._tree.module(file)
                if tree is not None:
                    self._own[name] = Module(self, name, file, tree)
                    break
        return self._own[name]

    def any_module(self, name: str) -> Any:
        """The module of this dotted name, whosever it is."""
        return self.module(name) or self._python.get(name) or outside(name)

    def name(self, module: str, name: str) -> Any:
        """The value of ``name`` in a module; Unknown where the source does not tell."""
        try:
            return self._from(module, name)
        except UndecidedError as error:
            return Unknown(str(error))
        except (Exception, SystemExit) as error:  # the source's own, or one of a source that would not run
            return Unknown(f"{type(error).__name__}: {error}")

    def _from(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == PACKAGE:
            own = self.module(module)
            if own is None:
                return self.module(f"{module}.{name}") or Unknown(f"no {module}")
            return own.attribute(name)
        if module in self._python:
            return self._python[module].get(name)
        return outside(f"{module}.{name}")

    def _look_up(self, name: str, scope: Scope) -> Any:
        return scope.get(name)

    def attribute(self, value: Any, name: str) -> Any:
        """``value.name``. AttributeError as Python would."""
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Module):
            return value.attribute(name)
        if isinstance(value, Names):
            return value.get(name)
        if isinstance(value, Made):
            return value.named.get(name, Unknown(f"{value.kind.__name__}().{name} is worked out by its class"))
        if _foreign(value):
            return getattr(value, name) if name in {"__name__", "__module__"} else outside(f"{value.path}.{name}")
        if isinstance(value, super) or isinstance(value if isinstance(value, type) else type(value), SourceClass):
            return self._own_attribute(value, name)
        if is_open(value, name):
            return getattr(value, name)
        if isinstance(value, str) and name in {"format", "format_map"}:
            return Unknown(f"str.{name} is not run")
        kind = value if isinstance(value, type) else type(value)
        if not any(name in vars(owner) for owner in kind.__mro__) and name not in getattr(value, "__dict__", {}):
            raise AttributeError(name)
        raise UndecidedError(f"{name} is not looked at")

    def _own_attribute(self, value: Any, name: str) -> Any:
        """Of a class of the source, of its instance, or of ``super()``: what the source itself binds, and what is open
        of the class of Python's own that it extends."""
        if isinstance(value, super):
            cls: Any = value.__self_class__  # type: ignore[attr-defined]
            order = cls.__mro__[cls.__mro__.index(value.__thisclass__) + 1 :]  # type: ignore[attr-defined]
        else:
            cls = value if isinstance(value, type) else type(value)
            order = cls.__mro__
            if not isinstance(value, type) and hasattr(value, "__dict__") and of_instance(value, name):
                return vars(value)[name]
        for owner in order:
            if isinstance(owner, SourceClass):
                if name in members(owner):
                    return getattr(value, name)
            elif isinstance(owner, Outside):
                if not name.startswith("__"):
                    return Unknown(f"{cls.__name__}.{name}: {owner.path} is not in this source")
            elif name in vars(owner) and of_base(cls, name):
                return getattr(value, name)
        if name in {"__name__", "__module__", "__doc__"} and isinstance(value, type):
            return type.__getattribute__(value, name)
        if name in {"__init__", "__post_init__"}:
            return lambda *_, **__: None
        raise AttributeError(f"{cls.__name__} has no {name}")

    def _getattr(self, value: Any, name: str, *default: Any) -> Any:
        try:
            return self.attribute(value, name)
        except (AttributeError, KeyError):
            if default:
                return default[0]
            raise

    def _setattr(self, owner: Any, name: str, value: Any) -> None:
        own = isinstance(type(owner), SourceClass) or isinstance(owner, argparse.Action | argparse.Namespace)
        if not own or name.startswith("__"):
            raise UndecidedError(f"{name} is set")
        setattr(owner, name, value)

    def _hasattr(self, value: Any, name: str) -> bool:
        if isinstance(value, Unknown | Made):
            raise UndecidedError(f"whether there is a {name}")
        try:
            self.attribute(value, name)
        except AttributeError:
            return False
        return True

    # statements

    def bind(self, statement: ast.stmt, name: str, scope: Scope) -> Any:
        """What ``statement`` binds ``name`` to."""
        if isinstance(statement, ast.FunctionDef):
            return self._function(statement, scope)
        if isinstance(statement, ast.ClassDef):
            return self._class(statement, scope)
        if isinstance(statement, ast.ImportFrom):
            alias = next(a for a in statement.names if (a.asname or a.name) in {name, "*"})
            return self._from(_absolute(scope.module, statement), name if alias.name == "*" else alias.name)
        if isinstance(statement, ast.Import):
            alias = next(a for a in statement.names if (a.asname or a.name.partition(".")[0]) == name)
            path = alias.name if alias.asname else name
            return self.any_module(path)
        given = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if given is None:
            raise UndecidedError(f"{name}: {ast.unparse(statement)[:60]}")
        value = self.evaluate(given, scope)
        if isinstance(statement, ast.Assign) and not isinstance(statement.targets[0], ast.Name):
            inner = Scope(scope)
            self._assign(statement.targets[0], value, inner)
            return inner.names[name]
        return value

    def call(self, function: Function, scope: Scope, given: tuple[Any, ...]) -> Any:
        """Run the body. What cannot be decided in it makes the result unknown; but a parser that is handed over would
        be left half done, so there the whole run ends."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise UndecidedError("calls are nested too deep")
            if isinstance(function.node, ast.Lambda):
                return self.evaluate(function.node.body, scope)
            self._run(function.node.body, scope)
        except _Return as done:
            return done.value
        except UndecidedError as error:
            if any(isinstance(each, argparse._ActionsContainer) for each in given):
                raise
            return Unknown(str(error))
        finally:
            self._depth -= 1
        return None

    def _run(self, body: list[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._spend()
            getattr(self, f"_run_{type(statement).__name__}", self._run_other)(statement, scope)

    def _run_other(self, statement: ast.stmt, scope: Scope) -> None:
        raise UndecidedError(f"{type(statement).__name__} is not run")

    def _run_Pass(self, statement: ast.Pass, scope: Scope) -> None:
        pass

    _run_Global = _run_Nonlocal = _run_Assert = _run_Pass

    def _run_Expr(self, statement: ast.Expr, scope: Scope) -> None:
        self.evaluate(statement.value, scope)

    def _run_Return(self, statement: ast.Return, scope: Scope) -> None:
        raise _Return(self.evaluate(statement.value, scope) if statement.value else None)

    def _run_FunctionDef(self, statement: ast.FunctionDef, scope: Scope) -> None:
        scope.names[statement.name] = self._function(statement, scope)

    def _run_Import(self, statement: ast.Import, scope: Scope) -> None:
        for name in _binds(statement):
            scope.names[name] = self.bind(statement, name, scope)

    def _run_ImportFrom(self, statement: ast.ImportFrom, scope: Scope) -> None:
        for name in _binds(statement):
            try:
                scope.names[name] = self.bind(statement, name, scope)
            except UndecidedError as error:
                scope.names[name] = Unknown(str(error))

    def _run_Assign(self, statement: ast.Assign, scope: Scope) -> None:
        value = self.evaluate(statement.value, scope)
        for target in statement.targets:
            self._assign(target, value, scope)

    def _run_AnnAssign(self, statement: ast.AnnAssign, scope: Scope) -> None:
        if statement.value is not None:
            self._assign(statement.target, self.evaluate(statement.value, scope), scope)

    def _run_AugAssign(self, statement: ast.AugAssign, scope: Scope) -> None:
        reading = copy.copy(statement.target)
        reading.ctx = ast.Load()
        old, new = self.evaluate(reading, scope), self.evaluate(statement.value, scope)
        if isinstance(old, list) and isinstance(statement.op, ast.Add):
            old.extend(new)
            return
        self._assign(statement.target, self._operate(statement.op, old, new), scope)

    def _run_Delete(self, statement: ast.Delete, scope: Scope) -> None:
        for target in statement.targets:
            if not isinstance(target, ast.Subscript):
                raise UndecidedError(ast.unparse(statement))
            owner = self.evaluate(target.value, scope)
            if isinstance(owner, Unknown):
                raise UndecidedError(owner.reason)
            del owner[self.evaluate(target.slice, scope)]

    def _run_If(self, statement: ast.If, scope: Scope) -> None:
        self._run(statement.body if self.holds(statement.test, scope) else statement.orelse, scope)

    def _run_For(self, statement: ast.For, scope: Scope) -> None:
        for value in self._each(self.evaluate(statement.iter, scope)):
            self._assign(statement.target, value, scope)
            try:
                self._run(statement.body, scope)
            except _Leave as leave:
                if not leave.again:
                    return
        self._run(statement.orelse, scope)

    def _run_While(self, statement: ast.While, scope: Scope) -> None:
        while self.holds(statement.test, scope):
            try:
                self._run(statement.body, scope)
            except _Leave as leave:
                if not leave.again:
                    return

    def _run_Break(self, statement: ast.Break, scope: Scope) -> None:
        raise _Leave(False)

    def _run_Continue(self, statement: ast.Continue, scope: Scope) -> None:
        raise _Leave(True)

    def _run_With(self, statement: ast.With, scope: Scope) -> None:
        for item in statement.items:
            if item.optional_vars is not None:
                self._assign(item.optional_vars, Unknown(ast.unparse(item.context_expr)), scope)
        self._run(statement.body, scope)

    def _run_Raise(self, statement: ast.Raise, scope: Scope) -> None:
        error = self.evaluate(statement.exc, scope) if statement.exc else None
        if isinstance(error, type) and issubclass(error, Exception):
            error = error()
        raise error if isinstance(error, Exception) else UndecidedError(f"raises {ast.unparse(statement)[:60]}")

    def _run_Try(self, statement: ast.Try, scope: Scope) -> None:
        try:
            self._run(statement.body, scope)
        except (_Return, _Leave, UndecidedError):
            raise
        except Exception as error:
            for handler in statement.handlers:
                kinds = self.evaluate(handler.type, scope) if handler.type else Exception
                if isinstance(kinds, type | tuple) and isinstance(error, kinds):
                    if handler.name:
                        scope.names[handler.name] = error
                    self._run(handler.body, scope)
                    break
            else:
                raise
        else:
            self._run(statement.orelse, scope)
        self._run(statement.finalbody, scope)

    def _assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, list(self._each(value)), scope)
        elif isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value, scope)
            if not isinstance(owner, Unknown):
                owner[self.evaluate(target.slice, scope)] = value
        elif isinstance(target, ast.Attribute):
            self._setattr(self.evaluate(target.value, scope), target.attr, value)
        else:
            raise UndecidedError(ast.unparse(target))

    def _unpack(self, target: ast.Tuple | ast.List, values: list[Any], scope: Scope) -> None:
        star = next((i for i, part in enumerate(target.elts) if isinstance(part, ast.Starred)), None)
        if star is not None:
            after = len(target.elts) - star - 1
            middle = values[star : len(values) - after]
            values = [*values[:star], middle, *values[len(values) - after :]]
        for part, value in zip(target.elts, values, strict=True):
            self._assign(part.value if isinstance(part, ast.Starred) else part, value, scope)

    # classes and functions

    def _function(self, node: ast.FunctionDef, scope: Scope) -> Any:
        made: Any = Function(self, node, scope)
        for decorator in node.decorator_list:
            name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
            if name in {"staticmethod", "classmethod", "property"}:
                made = BUILTINS[name](made)
        return made

    def _class(self, node: ast.ClassDef, scope: Scope) -> Any:
        bases: list[Any] = [self._base(base, scope) for base in node.bases]
        if any(base in {typing.TypedDict, typing.NamedTuple} for base in bases if callable(base)):
            return typing.TypedDict(node.name, {}) if typing.TypedDict in bases else outside(f"vllm.{node.name}")  # type: ignore[operator]
        bases = [base for base in bases if isinstance(base, type) and base not in {object, typing.Generic}]
        if any(issubclass(base, enum.Enum) for base in bases):
            return self._enum(node, tuple(bases), scope)
        bases = [base for base in bases if issubclass(SourceClass, type(base))]  # no Protocol, no abstract one
        body = dict(self._members(node.body, scope))
        names: dict[str, Any] = {"path": f"{scope.module.name}.{node.name}", "__module__": scope.module.name}
        names |= {"_members": body, "node": node, "scope": scope, "interpreter": self}
        names["__getattr__"] = lambda instance, name: getattr(type(instance), name)
        cls = SourceClass(node.name, tuple(bases), names)
        for name, statement in body.items():
            if isinstance(statement, ast.FunctionDef):
                method = self._function(statement, ClassScope(scope, cls))
                function = getattr(method, "__func__", None) or getattr(method, "fget", None) or method
                function.owner = cls
                if function.owner is not None and isinstance(method, classmethod):
                    function.scope = Scope(function.scope)
                type.__setattr__(cls, name, method)
        return cls

    def _base(self, base: ast.expr, scope: Scope) -> Any:
        try:
            value = self.evaluate(base.value if isinstance(base, ast.Subscript) else base, scope)
        except UndecidedError:
            value = None
        return outside(f"unread.{ast.unparse(base)}") if value is None or isinstance(value, Unknown) else value

    def _members(self, body: list[ast.stmt], scope: Scope) -> Iterator[tuple[str, ast.stmt]]:
        for statement in body:
            if isinstance(statement, ast.If):
                yield from self._members(
                    statement.body if self.holds(statement.test, scope) else statement.orelse, scope
                )
            else:
                for name in _binds(statement):
                    yield name, statement

    def _enum(self, node: ast.ClassDef, bases: tuple[type, ...], scope: Scope) -> Any:
        inner = Scope(scope)

        def fill(names: Any) -> None:
            names["__module__"] = scope.module.name
            for statement in node.body:
                if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                    inner.names[statement.targets[0].id] = self.evaluate(statement.value, inner)
                    names[statement.targets[0].id] = inner.names[statement.targets[0].id]

        return types.new_class(node.name, bases, {}, fill)

    def fields(self, cls: Any) -> list[Field]:
        """``dataclasses.fields`` of a class of the source."""
        if not self.is_dataclass(cls):
            raise UndecidedError(f"{getattr(cls, '__name__', cls)} is no dataclass that could be read")
        found: dict[str, Field] = {}
        for owner in reversed(cls.__mro__):
            if not isinstance(owner, SourceClass) or not _decorated(owner.node):
                continue
            for name, statement in members(owner).items():
                if isinstance(statement, ast.AnnAssign) and not _class_variable(statement.annotation):
                    found[name] = self._field(name, statement, ClassScope(owner.scope, owner))
        return list(found.values())

    def _field(self, name: str, statement: ast.AnnAssign, scope: Scope) -> Field:
        missing = dataclasses.MISSING
        hint = self._hint(statement.annotation, scope)
        if statement.value is None:
            return Field(name, hint, missing, missing)
        default = self._soft(statement.value, scope)
        if isinstance(default, FieldInfo) and default.from_dataclasses:
            return Field(name, hint, default.default, default.default_factory or missing, bool(default.init))
        return Field(name, hint, default, missing)

    def _hint(self, node: ast.expr, scope: Scope) -> Any:
        """A type hint; one in quotes is read as if it were in none, as pydantic does."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError as error:
                return Unknown(f"a hint is no Python: {error}")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = [self._hint(side, scope) for side in (node.left, node.right)]
            unread = next((side for side in sides if isinstance(side, Unknown)), None)
            return unread or sides[0] | sides[1]
        return self._soft(node, scope)

    def is_dataclass(self, cls: Any) -> bool:
        return isinstance(cls, SourceClass) and any(
            _decorated(owner.node) for owner in cls.__mro__ if isinstance(owner, SourceClass)
        )

    # expressions

    def _soft(self, node: ast.expr, scope: Scope) -> Any:
        try:
            return self.evaluate(node, scope)
        except UndecidedError as error:
            return Unknown(str(error))

    def evaluate(self, node: ast.expr, scope: Scope) -> Any:
        """The value of an expression. UndecidedError where there is nothing to stand for it."""
        self._spend()
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            raise UndecidedError(f"{type(node).__name__} is not worked out")
        return method(node, scope)

    def _spend(self) -> None:
        self._budget -= 1
        if self._budget < 0 or (self._budget % 1024 == 0 and time.process_time() > self._ends):
            self._budget = -1
            raise UndecidedError("it takes too long")

    def holds(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a test holds. UndecidedError where that cannot be told."""
        return bool(self._value(node, scope))

    def _value(self, node: ast.expr, scope: Scope) -> Any:
        """As ``evaluate``, where a value is needed: a name of another package stands for none."""
        value = self.evaluate(node, scope)
        return Unknown(f"{value.path} is not in this source") if _foreign(value) else value

    def _each(self, values: Any) -> Iterator[Any]:
        if isinstance(values, Outside):
            raise UndecidedError(f"{values.path} is gone through")
        for value in values:
            self._spend()
            yield value

    # Python's own functions that call others: what they call must not get past ``_apply``

    def _map(self, function: Any, *values: Any) -> list[Any]:
        rows = zip(*(self._each(each) for each in values), strict=False)
        return [self._apply(function, list(row), {}) for row in rows]

    def _filter(self, function: Any, values: Any) -> list[Any]:
        return [v for v in self._each(values) if (v if function is None else self._apply(function, [v], {}))]

    def _sorted(self, values: Any, *, key: Any = None, reverse: bool = False) -> list[Any]:
        return sorted(self._each(values), key=self._key(key), reverse=reverse)

    def _extreme(self, of: Any, *values: Any, key: Any = None, **default: Any) -> Any:
        among = list(self._each(values[0])) if len(values) == 1 else values
        return of(among, key=self._key(key), **default)

    def _key(self, function: Any) -> Any:
        return None if function is None else lambda value: self._apply(function, [value], {})

    def _sum(self, values: Any, start: Any = 0) -> Any:
        for value in self._each(values):
            start = self._operate(ast.Add(), start, value)
        return start

    def _type(self, *given: Any) -> Any:
        """``type(value)``. Nobody makes a class by it, or gets at one that is this interpreter's own."""
        kind = type(given[0]) if len(given) == 1 else None
        if isinstance(kind, SourceClass) or (kind is not None and may_be_asked_for(kind)):
            return kind
        raise UndecidedError("type() of something else than a value")

    def _Constant(self, node: ast.Constant, scope: Scope) -> Any:
        return node.value

    def _Name(self, node: ast.Name, scope: Scope) -> Any:
        return self._look_up(node.id, scope)

    def _Attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self.attribute(self.evaluate(node.value, scope), node.attr)

    def _Subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        owner, key = self.evaluate(node.value, scope), self.evaluate(node.slice, scope)
        if isinstance(owner, Unknown):
            return owner
        if isinstance(owner, Outside):
            return owner  # Generic[T]
        if isinstance(key, Unknown):
            return key
        return owner[key]

    def _Slice(self, node: ast.Slice, scope: Scope) -> Any:
        return slice(*(part and self.evaluate(part, scope) for part in (node.lower, node.upper, node.step)))

    def _Tuple(self, node: ast.Tuple, scope: Scope) -> Any:
        return tuple(self._elements(node.elts, scope))

    def _List(self, node: ast.List, scope: Scope) -> Any:
        return list(self._elements(node.elts, scope))

    def _Set(self, node: ast.Set, scope: Scope) -> Any:
        return set(self._elements(node.elts, scope))

    def _elements(self, nodes: list[ast.expr], scope: Scope) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self._each(self.evaluate(node.value, scope))
            else:
                yield self._soft(node, scope)

    def _Dict(self, node: ast.Dict, scope: Scope) -> Any:
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                made |= self.evaluate(value, scope)
            else:
                made[self.evaluate(key, scope)] = self._soft(value, scope)
        return made

    def _Lambda(self, node: ast.Lambda, scope: Scope) -> Any:
        return Function(self, node, scope)

    def _IfExp(self, node: ast.IfExp, scope: Scope) -> Any:
        try:
            holds = self.holds(node.test, scope)
        except UndecidedError as error:
            return Unknown(str(error))
        return self.evaluate(node.body if holds else node.orelse, scope)

    def _NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> Any:
        value = self.evaluate(node.value, scope)
        self._assign(node.target, value, scope)
        return value

    def _JoinedStr(self, node: ast.JoinedStr, scope: Scope) -> Any:
        try:
            return "".join(str(self.evaluate(part, scope)) for part in node.values)
        except UndecidedError as error:
            return Unknown(str(error))

    def _FormattedValue(self, node: ast.FormattedValue, scope: Scope) -> str:
        if node.format_spec is not None:
            raise UndecidedError("a format")
        value = self._value(node.value, scope)
        return repr(value) if node.conversion == ord("r") else str(value)

    def _BoolOp(self, node: ast.BoolOp, scope: Scope) -> Any:
        stops = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self._value(part, scope)
            if isinstance(value, Unknown) or (part is not node.values[-1] and bool(value) is stops):
                break
        return value

    def _UnaryOp(self, node: ast.UnaryOp, scope: Scope) -> Any:
        value = self._value(node.operand, scope)
        return value if isinstance(value, Unknown) else _UNARY[type(node.op)](value)

    def _BinOp(self, node: ast.BinOp, scope: Scope) -> Any:
        return self._operate(node.op, self.evaluate(node.left, scope), self.evaluate(node.right, scope))

    def _operate(self, op: ast.operator, left: Any, right: Any) -> Any:
        for side in (left, right):
            if isinstance(side, Unknown):
                return side
            if _foreign(side) and not isinstance(op, ast.BitOr):  # not in a hint
                return Unknown(f"{side.path} is not in this source")
        if isinstance(left, int) and isinstance(right, int) and max(left.bit_length(), right.bit_length()) > MAX_BITS:
            raise UndecidedError("too large")
        if isinstance(op, ast.Mod) and isinstance(left, str | bytes) and WIDE.search(str(left)):
            raise UndecidedError("a text of a given width")
        if isinstance(op, ast.Pow | ast.LShift) and not (abs(left) < MAX_SIZE and abs(right) <= 64):
            raise UndecidedError("too large")
        if isinstance(op, ast.Mult | ast.Add) and _size(left, op, right) > MAX_SIZE:
            raise UndecidedError("too large")
        try:
            return _BINARY[type(op)](left, right)
        except UndecidedError as error:
            return Unknown(str(error))

    def _Compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.evaluate(node.left, scope)
        for op, following in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(following, scope)
            sides = (left, right)
            for side in sides:
                by_identity = isinstance(op, ast.Is | ast.IsNot) and None not in sides
                if isinstance(side, Unknown):
                    return side
                if _foreign(side) and not by_identity:
                    return Unknown(f"{side.path} is not in this source")
            try:
                if not COMPARISONS[COMPARED_BY[type(op)]](left, right):
                    return False
            except UndecidedError as error:
                return Unknown(str(error))
            left = right
        return True

    def _ListComp(self, node: ast.ListComp, scope: Scope) -> Any:
        return list(self._gone_through(node.generators, node.elt, scope))

    def _GeneratorExp(self, node: ast.GeneratorExp, scope: Scope) -> Any:
        return self._gone_through(node.generators, node.elt, scope)

    def _SetComp(self, node: ast.SetComp, scope: Scope) -> Any:
        return set(self._gone_through(node.generators, node.elt, scope))

    def _DictComp(self, node: ast.DictComp, scope: Scope) -> Any:
        pair = ast.Tuple(elts=[node.key, node.value], ctx=ast.Load())
        return dict(self._gone_through(node.generators, pair, scope))

    def _gone_through(self, loops: list[ast.comprehension], element: ast.expr, scope: Scope) -> Iterator[Any]:
        if not loops:
            yield self.evaluate(element, scope)
            return
        for value in self._each(self.evaluate(loops[0].iter, scope)):
            inner = Scope(scope)
            self._assign(loops[0].target, value, inner)
            if all(self.holds(test, inner) for test in loops[0].ifs):
                yield from self._gone_through(loops[1:], element, inner)

    def _Call(self, node: ast.Call, scope: Scope) -> Any:
        function = self.evaluate(node.func, scope)
        if isinstance(function, Unknown):
            return function
        given = list(self._elements(node.args, scope))
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                named |= self.evaluate(keyword.value, scope)
            else:
                named[keyword.arg] = self._soft(keyword.value, scope)
        return self._apply(function, given, named)

    def _apply(self, function: Any, given: list[Any], named: dict[str, Any]) -> Any:
        if _foreign(function):
            return function(*given, **named)
        foreign = next((value for value in given if _foreign(value)), None)
        if foreign is not None and isinstance(function, Hashable) and function in self._of_values:
            return Unknown(f"{foreign.path} is not in this source")
        if function is type:
            return self._type(*given)
        registers = isinstance(getattr(function, "__self__", None), argparse._ActionsContainer)
        unread = named.get("type")
        if registers and isinstance(unread, Unknown):
            named["type"] = lambda _: unread  # argparse would look it up in a table
        makes = function is range or isinstance(getattr(function, "__self__", None), str | bytes | list)
        if makes and any(isinstance(value, int) and abs(value) > MAX_SIZE for value in given):
            raise UndecidedError("too large")
        try:
            return function(*given, **named)
        except (TypeError, ValueError):
            unread = next((value for value in given if isinstance(value, Unknown)), None)
            if unread is None:
                raise
            return unread
        except UndecidedError as error:
            own = getattr(function, "__func__", function)
            if registers or isinstance(own, Function) or getattr(own, "__name__", "") in MUTATORS:
                raise
            return Unknown(str(error))


def _foreign(value: Any) -> bool:
    """A name of another package, which only its identity is known of."""
    return isinstance(value, Outside) and not isinstance(value, SourceClass)


def _size(left: Any, op: ast.operator, right: Any) -> int:
    """Of what ``+`` or ``*`` would make of a text or list; 0 of numbers."""
    sizes = [len(side) if isinstance(side, str | bytes | list | tuple) else None for side in (left, right)]
    if sizes == [None, None]:
        return 0
    counts = [size if size is not None else abs(side) for size, side in zip(sizes, (left, right), strict=True)]
    return int(counts[0] + counts[1] if isinstance(op, ast.Add) else counts[0] * counts[1])


def _decorated(node: ast.ClassDef) -> bool:
    names = (dotted(d.func if isinstance(d, ast.Call) else d) or "" for d in node.decorator_list)
    return any(name.rpartition(".")[2] in DATACLASS for name in names)


def _class_variable(annotation: ast.expr) -> bool:
    text = ast.unparse(annotation)
    return "ClassVar[" in text or text == "ClassVar" or text.startswith("InitVar")


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    depth = node.level - module.file.endswith("__init__.py")
    base = parts[: len(parts) - depth]
    return ".".join([*base, *([node.module] if node.module else [])])


def _binds(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        return [alias.asname or alias.name for alias in statement.names]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if isinstance(statement, ast.AugAssign):
        return []
    return [node.id for t in targets if t is not None for node in ast.walk(t) if _is_store(node)]  # type: ignore[attr-defined]


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _changes(statement: ast.stmt) -> Iterator[str]:
    """Names whose values a statement of a module changes."""
    for node in [] if isinstance(statement, ast.FunctionDef | ast.ClassDef) else ast.walk(statement):
        if isinstance(node, ast.AugAssign):
            yield dotted(node.target) or ""
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            yield dotted(node.value) or ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            yield dotted(node.func.value) or ""
