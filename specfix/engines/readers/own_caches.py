"""Read which values of --kv-cache-dtype a model's own attention refuses, whatever the backends take.

The attention of such a model keeps its cache packed in a format of its own, and asks for the dtype itself: in its
``__init__``, or in a function that it calls there, under a flag of the class that a backend's subclass may clear.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from specfix.engines.facts.quantisation import OwnCache
from specfix.engines.readers.backends import kv_cache_dtypes
from specfix.engines.source.classes import Class, Classes
from specfix.engines.source.lookup import imported_from
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

FOLDERS = ("models", "model_executor/layers")
DTYPE = "kv_cache_dtype"  # what the engine calls it throughout
BACKENDS = "AttentionBackendEnum"
INIT = "__init__"


def read_own_caches(tree: SourceTree, classes: Classes, architectures: Mapping[str, str]) -> dict[str, OwnCache]:
    """By the architecture whose class takes such an attention from another file."""
    values = kv_cache_dtypes(tree)
    found = {file: checked for file in _files(tree) if (checked := _Checked(tree, file, values)).names}
    caches = {}
    for name, path in architectures.items() if found else ():
        cls = next(iter(classes.at(path)), None)
        cache = None if cls is None else _of_class(tree, cls, found)
        if cache is not None:
            caches[name] = cache
    return caches


def _files(tree: SourceTree) -> Iterator[str]:
    for folder in FOLDERS:
        yield from (
            file for file in tree.files(folder) if file.endswith("attention.py") and DTYPE in (tree.text(file) or "")
        )


def _of_class(tree: SourceTree, cls: Class, found: Mapping[str, _Checked]) -> OwnCache | None:
    for file, checked in found.items():
        if any(imported_from(tree, cls.file, name) == file for name in checked.names):
            plain = _backends(tree, cls.file, checked.plain)
            return None if plain is None else OwnCache(checked.refuses, plain)
    return None


class _Checked:
    """What the attention classes of one file ask of the dtype. ``names``: the classes that ask, and those that make
    one of them; ``refuses``: the values with which they raise; ``plain``: subclasses that do not ask."""

    def __init__(self, tree: SourceTree, file: str, values: Sequence[str]) -> None:
        module = tree.module(file)
        self.names: set[str] = set()
        self.refuses: tuple[str, ...] = ()
        self.plain: set[str] = set()
        functions = [node for node in (module.body if module else ()) if isinstance(node, ast.FunctionDef)]
        asking = {function.name: _guarded(function) for function in functions}
        made = list(walk(module, ast.ClassDef)) if module else []
        inits = {cls.name: init for cls in made if (init := _method(cls, INIT))}
        for cls in made:
            init = inits.get(cls.name)
            calls = [call for call in (walk(init, ast.Call) if init else ()) if dotted(call.func) in asking]
            asked = [(asking[str(dotted(call.func))], set(_flags(cls, call))) for call in calls]
            for body, flags in [*asked, (init.body if init else [], set[str]())]:
                refused = tuple(value for value in values if _refused(body, value)[0])
                if refused:
                    self.names.add(cls.name)
                    self.refuses = refused
                    self.plain |= _clearing(tree, file, flags)
        self.names |= {
            name
            for name, init in inits.items()
            if any(dotted(call.func) in self.names for call in walk(init, ast.Call))
        }


def _guarded(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements of ``if <first parameter>:``, or all of a function that has no such test."""
    first = function.args.args[0].arg if function.args.args else None
    for statement in function.body:
        if isinstance(statement, ast.If) and dotted(statement.test) == first:
            return statement.body
    return function.body


def _flags(cls: ast.ClassDef, call: ast.Call) -> Iterator[str]:
    """The names of ``self`` that the first argument hangs on: ``self.flag``, or ``self.method()`` and what it reads."""
    for node in walk(call.args[0], ast.Attribute) if call.args else ():
        if dotted(node.value) == "self":
            yield node.attr
            method = _method(cls, node.attr)
            yield from (
                each.attr for each in (walk(method, ast.Attribute) if method else ()) if dotted(each.value) == "self"
            )


def _clearing(tree: SourceTree, file: str, flags: set[str]) -> set[str]:
    """The classes below the file's folder that set one of the flags to anything but True, or answer for themselves."""
    found = set()
    for other in tree.files(file.rpartition("/")[0]) if flags else ():
        if other == file or not any(flag in (tree.text(other) or "") for flag in flags):
            continue
        module = tree.module(other)
        for cls in walk(module, ast.ClassDef) if module else ():
            if any(_clears(statement, flags) for statement in cls.body):
                found.add(cls.name)
    return found


def _clears(statement: ast.stmt, flags: set[str]) -> bool:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return name in flags and literal(value) is not True
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name in flags and literal(value) is not True
    return isinstance(statement, ast.FunctionDef) and statement.name in flags


def _backends(tree: SourceTree, file: str, plain: set[str]) -> tuple[str, ...] | None:
    """The backends by whose name a function of the model's file returns one of the ``plain`` classes. None where it
    may return one without being asked."""
    module = tree.module(file)
    names: set[str] = set()
    for function in walk(module, ast.FunctionDef) if module else ():
        returned = {id(node) for node in walk(function, ast.Return) if node.value and dotted(node.value) in plain}
        for branch in walk(function, ast.If):
            asked = {node.attr for node in walk(branch.test, ast.Attribute) if (dotted(node.value) or "") == BACKENDS}
            inside = {id(node) for statement in branch.body for node in walk(statement, ast.Return)} & returned
            if asked and inside:
                names |= asked
                returned -= inside
        if returned:
            return None
    return tuple(sorted(names))


def _method(cls: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _refused(body: Sequence[ast.stmt], value: str | None) -> tuple[bool, str | None]:
    """Whether these statements raise for this value of the dtype, and what it is after them: None where that cannot
    be told. Tests of anything else are passed over, unless the dtype hangs on them."""
    for statement in body:
        match statement:
            case ast.Assert(test=test) if _holds(test, value) is False:
                return True, value
            case ast.Raise():
                return True, value
            case ast.Return():
                return False, None
            case ast.If(test=test, body=then, orelse=otherwise):
                holds = _holds(test, value)
                if holds is not None:
                    refused, value = _refused(then if holds else otherwise, value)
                    if refused:
                        return True, value
                elif any(map(_decides, ast.walk(statement))):
                    return False, None
            case ast.Assign(targets=[ast.Name(id=name)], value=given) if name == DTYPE and not _is_start(given):
                other = literal(given)
                value = other if isinstance(other, str) else None
    return False, value


def _decides(node: ast.AST) -> bool:
    return isinstance(node, ast.Return) or (
        isinstance(node, ast.Name) and node.id == DTYPE and isinstance(node.ctx, ast.Store)
    )


def _is_start(given: ast.expr) -> bool:
    """``cache_config.cache_dtype``, with a default for where there is no config of the cache."""
    return any(node.attr == "cache_dtype" for node in walk(given, ast.Attribute))


def _holds(test: ast.expr, value: str | None) -> bool | None:
    """What a test says of the dtype; None where it is about anything else."""
    if value is None:
        return None
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            held = _holds(inner, value)
            return None if held is None else not held
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="startswith" | "endswith" as how), args=[part]):
            text = literal(part)
            if name != DTYPE or not isinstance(text, str):
                return None
            return value.startswith(text) if how == "startswith" else value.endswith(text)
        case ast.Compare(left=ast.Name(id=name), ops=[operator], comparators=[right]) if name == DTYPE:
            other = literal(right)
            match operator:
                case ast.Eq() | ast.NotEq() if isinstance(other, str):
                    return (value == other) is isinstance(operator, ast.Eq)
                case ast.In() | ast.NotIn() if isinstance(other, tuple | list | set):
                    return (value in other) is isinstance(operator, ast.In)
    return None
