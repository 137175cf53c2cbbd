"""Classes of an engine's source: found through its imports, with their bases, without importing anything."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from specfix.engines.source.imports import absolute, file_of, imported
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

PACKAGE = "vllm"  # head of its own absolute imports, wherever the folder stands
PLATFORM_TESTS = {"cuda": True, "cuda_alike": True, "rocm": False, "xpu": False, "cpu": False, "tpu": False}
MAX_HOPS = 12  # imports followed for one name; a circle of re-exports must end


@dataclass(frozen=True, eq=False)
class Class:
    """One class statement. Two of them are the same where their nodes and closures are.

    ``closure``: what names of the function around it mean, where a call of that function made the class."""

    file: str
    node: ast.ClassDef
    closure: Mapping[str, list[Class | None]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.node.name

    def members(self) -> dict[str, ast.stmt]:
        """Names bound in the body: methods, attributes, annotations, nested classes."""
        return self._members

    @cached_property
    def _members(self) -> dict[str, ast.stmt]:
        return {name: statement for statement in _flat(self.node.body) for name in bound_names(statement)}


@dataclass(frozen=True, slots=True)
class Lineage:
    """A class and its bases in order of look-up. ``complete`` is False where a base could not be read."""

    classes: tuple[Class, ...]
    complete: bool

    def find(self, name: str) -> tuple[Class, ast.stmt] | None:
        """Where ``name`` is bound first, and by which statement."""
        for owner in self.classes:
            statement = owner.members().get(name)
            if statement is not None:
                return owner, statement
        return None

    def method(self, name: str) -> tuple[Class, ast.FunctionDef] | None:
        found = self.find(name)
        return (found[0], found[1]) if found and isinstance(found[1], ast.FunctionDef) else None


class Classes:
    """Looks names up as Python would, module by module. ``None`` is what cannot be told from the source."""

    def __init__(self, tree: SourceTree, package: str = PACKAGE) -> None:
        self._tree = tree
        self._package = package
        self._lineages: dict[ast.ClassDef | Class, Lineage] = {}
        self._classes: dict[ast.ClassDef, Class] = {}
        self._made: dict[tuple[object, ...], Class] = {}
        self._bindings: dict[str, dict[str, list[ast.stmt]]] = {}  # file to name to the statements that bind it

    def at(self, path: str) -> list[Class | None]:
        """What ``module:Class`` or ``module.Class`` may mean: CUDA's where platforms differ."""
        module, _, name = path.replace(":", ".").rpartition(".")
        file = self._file(module)
        return [None] if file is None else self.named(file, name)

    def named(self, file: str, name: str, hops: int = 0) -> list[Class | None]:
        """What ``name`` means in ``file``. Empty: not of this source tree (torch); [None]: unreadable."""
        module = self._tree.module(file)
        if module is None or hops > MAX_HOPS:
            return [None]
        statements = self._binding(file, module).get(name)
        if statements is None:
            return self._lazy(file, module, name, hops)
        found: list[Class | None] = []
        for statement in statements:
            if isinstance(statement, ast.ClassDef):
                found.append(self._classes.setdefault(statement, Class(file, statement)))
            elif isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    if (alias.asname or alias.name) == name:
                        found += self._imported(file, statement, alias.name, hops)
            elif not isinstance(statement, ast.Import):
                value = getattr(statement, "value", None)
                if isinstance(value, ast.Name) and value.id != name:
                    found += [] if hasattr(builtins, value.id) else self.named(file, value.id, hops + 1)
                elif isinstance(value, ast.Call):
                    found += self._returned(file, value, {}, hops + 1)
                elif not (isinstance(value, ast.Constant) and value.value is None):
                    found.append(None)  # ``= None`` is only a placeholder for a failed import
        return _unique(found)

    def _binding(self, file: str, module: ast.Module) -> dict[str, list[ast.stmt]]:
        """Names of the module's top level to the statements that bind them, in order."""
        if file not in self._bindings:
            bindings = self._bindings[file] = {}
            for statement in _flat(module.body):
                for name in dict.fromkeys([*bound_names(statement), *imported(statement)]):
                    bindings.setdefault(name, []).append(statement)
        return self._bindings[file]

    def _lazy(self, file: str, module: ast.Module, name: str, hops: int) -> list[Class | None]:
        """A name that the module's own ``__getattr__`` hands on from a module that it imports."""
        getters = [s for s in module.body if isinstance(s, ast.FunctionDef) and s.name == "__getattr__"]
        statements = (statement for getter in getters for statement in _flat(getter.body))
        for statement in (each for each in statements if isinstance(each, ast.ImportFrom)):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return self._imported(file, statement, alias.name, hops)
                target = self._file(f"{absolute(self._package, file, statement)}.{alias.name}")
                for found in self.named(target, name, hops + 1) if target else ():
                    if found is not None:
                        return [found]
        return [None]

    def lineage(self, cls: Class) -> Lineage:
        """The method resolution order of ``cls``, as far as the source tells."""
        key = _key(cls)
        if key not in self._lineages:
            self._lineages[key] = Lineage((cls,), False)  # for a circle of bases
            self._lineages[key] = self._linearize(cls)
        return self._lineages[key]

    def _linearize(self, cls: Class) -> Lineage:
        complete = True
        bases: list[Lineage] = []
        for expression in cls.node.bases:
            candidates = self.of_expression(cls.file, expression, cls.closure)
            # of two of one name in a file the base is the one that was there before
            candidates = [other for other in candidates if other is not cls] or candidates
            complete = complete and len(candidates) <= 1 and None not in candidates
            known = [candidate for candidate in candidates if candidate is not None]
            bases += [self.lineage(base) for base in known[:1]]
        merged = _merge([list(base.classes) for base in bases] + [[base.classes[0] for base in bases]])
        return Lineage((cls, *merged), complete and all(base.complete for base in bases))

    def of_expression(
        self, file: str, expression: ast.expr, closure: Mapping[str, list[Class | None]] | None = None
    ) -> list[Class | None]:
        """The classes that an expression in ``file`` may mean."""
        if isinstance(expression, ast.Subscript):  # Generic[T], Base["Key"]
            return self.of_expression(file, expression.value, closure)
        if isinstance(expression, ast.Call):
            return self._returned(file, expression, closure or {})
        if isinstance(expression, ast.Name):
            if closure and expression.id in closure:
                return closure[expression.id]
            return [] if hasattr(builtins, expression.id) else self.named(file, expression.id)
        head, _, name = (dotted(expression) or "").rpartition(".")
        module = self._module_alias(file, head) if head else None
        if module is None:
            return [None]
        target = self._file(module)
        return self.named(target, name) if target else []

    def _returned(
        self, file: str, call: ast.Call, closure: Mapping[str, list[Class | None]], hops: int = 0
    ) -> list[Class | None]:
        """The classes that a call of one of the tree's own functions makes of the classes that it is given."""
        home = self._function(file, call.func.id) if isinstance(call.func, ast.Name) and hops <= MAX_HOPS else None
        if home is None or call.keywords:
            return [None]
        names = [argument.arg for argument in home[1].args.args]
        given = [self.of_expression(file, argument, closure) for argument in call.args]
        bound = dict(zip(names, given, strict=False))
        if len(given) != len(names) or any(len(classes) != 1 or None in classes for classes in given):
            return [None]
        return _unique(self._results(*home, bound))

    def _results(
        self, file: str, function: ast.FunctionDef, bound: Mapping[str, list[Class | None]]
    ) -> list[Class | None]:
        closure = dict(bound)
        inner: dict[str, ast.ClassDef] = {}
        for statement in function.body:
            if isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    closure[alias.asname or alias.name] = self._imported(file, statement, alias.name, 0)
            elif isinstance(statement, ast.ClassDef):
                inner[statement.name] = statement
            elif isinstance(statement, ast.If):
                holds = self._flagged(file, statement.test, bound)
                body = statement.body if holds else statement.orelse
                if holds is None and any(True for _ in walk(statement, ast.Return)):
                    return [None]
                for each in body:
                    if isinstance(each, ast.Return):
                        return self._given(each.value, bound)
            elif isinstance(statement, ast.Return):
                made = inner.get(getattr(statement.value, "id", ""))
                if made is None:
                    return self._given(statement.value, bound)
                key = (made, *(classes[0] for classes in bound.values()))
                return [self._made.setdefault(key, Class(file, made, closure))]
            elif any(True for _ in walk(statement, ast.Return)):
                break
        return [None]

    @staticmethod
    def _given(value: ast.expr | None, bound: Mapping[str, list[Class | None]]) -> list[Class | None]:
        return bound.get(getattr(value, "id", ""), [None])

    def _flagged(self, file: str, test: ast.expr, bound: Mapping[str, list[Class | None]]) -> bool | None:
        """Whether ``f(cls)`` holds, where f only reads one attribute: ``getattr(model, "is_odd", False)``."""
        match test:
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=argument)], keywords=[]) if argument in bound:
                home, cls = self._function(file, name), bound[argument][0]
            case _:
                return None
        reads = [node for node in walk(home[1], ast.Call) if dotted(node.func) == "getattr"] if home else []
        if len(reads) != 1 or len(reads[0].args) != 3 or literal(reads[0].args[2]) is not False or cls is None:
            return None
        lineage = self.lineage(cls)
        mark = lineage.find(str(literal(reads[0].args[1])))
        value = literal(getattr(mark[1], "value", None)) if mark else False
        return value if isinstance(value, bool) and (mark or lineage.complete) else None

    def function(self, file: str, name: str) -> ast.FunctionDef | None:
        """The function of the source tree that ``name`` means in ``file``."""
        found = self._function(file, name)
        return found[1] if found else None

    def _function(self, file: str, name: str, hops: int = 0) -> tuple[str, ast.FunctionDef] | None:
        """The function that ``name`` means in ``file``, and its own file."""
        module = self._tree.module(file)
        for statement in reversed(self._binding(file, module).get(name, [])) if module and hops <= MAX_HOPS else ():
            if isinstance(statement, ast.FunctionDef):
                return file, statement  # overloads come first
            if isinstance(statement, ast.ImportFrom):
                target = self._file(absolute(self._package, file, statement))
                alias = next((a for a in statement.names if (a.asname or a.name) == name), None)
                if target and alias:
                    return self._function(target, alias.name, hops + 1)
        return None

    def _imported(self, file: str, node: ast.ImportFrom, name: str, hops: int) -> list[Class | None]:
        module = absolute(self._package, file, node)
        if module.partition(".")[0] != self._package:
            return []
        target = self._file(module)
        return [None] if target is None else self.named(target, name, hops + 1)

    def _module_alias(self, file: str, name: str) -> str | None:
        """The module that the dotted ``name`` means in ``file``: ``nn`` and ``torch.nn`` alike."""
        first, _, rest = name.partition(".")
        module = self._tree.module(file)
        for statement in _flat(module.body) if module else ():
            origin = f"{absolute(self._package, file, statement)}." if isinstance(statement, ast.ImportFrom) else ""
            for alias in statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else ():
                if (alias.asname or alias.name.partition(".")[0]) == first:
                    target = origin + (alias.name if alias.asname or origin else first)
                    return f"{target}.{rest}" if rest else target
        return None

    def _file(self, module: str) -> str | None:
        """File of a dotted module; a bare name is a module of the model folder, as the registry writes it."""
        head, _, rest = module.partition(".")
        return file_of(self._tree, rest if head == self._package else f"model_executor.models.{module}")


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body and of the branches in it that a CUDA host would take."""
    for statement in body:
        if isinstance(statement, ast.If):
            holds = _on_cuda(statement.test)
            if holds is not False:
                yield from _flat(statement.body)
            if holds is not True:
                yield from _flat(statement.orelse)
        elif isinstance(statement, ast.Try):
            handlers = [inner for handler in statement.handlers for inner in handler.body]
            yield from _flat(statement.body + handlers + statement.orelse)
        elif isinstance(statement, ast.With):
            yield from _flat(statement.body)
        else:
            yield statement


def _on_cuda(test: ast.expr) -> bool | None:
    """Whether a test of the platform holds on CUDA; None for any other test."""
    name = dotted(test.func if isinstance(test, ast.Call) else test) or ""
    if name.endswith("TYPE_CHECKING"):
        return False
    if ".is_" in name and "platform" in name:
        return PLATFORM_TESTS.get(name.rpartition(".is_")[2])
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _on_cuda(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        values = {_on_cuda(part) for part in test.values}
        decisive = isinstance(test.op, ast.Or)
        return decisive if decisive in values else None if None in values else not decisive
    return None


def bound_names(statement: ast.stmt) -> list[str]:
    """The names that a statement other than an import binds, each by itself."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _key(cls: Class) -> ast.ClassDef | Class:
    """By what a class is known: one made by a call is another for each call."""
    return cls if cls.closure else cls.node


def _unique(found: list[Class | None]) -> list[Class | None]:
    seen: dict[object, Class | None] = {_key(cls) if cls else None: cls for cls in found}
    return list(seen.values())


def _merge(sequences: list[list[Class]]) -> list[Class]:
    """Python's C3 merge; where there is no such order (source that would not run) the order of writing."""
    merged: list[Class] = []
    rest = [list(sequence) for sequence in sequences if sequence]
    while rest:
        heads = [s[0] for s in rest if not any(s[0].node is c.node for other in rest for c in other[1:])]
        chosen = (heads or [rest[0][0]])[0]
        merged.append(chosen)
        rest = [s for s in ([c for c in sequence if c.node is not chosen.node] for sequence in rest) if s]
    return merged
