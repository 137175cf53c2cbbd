"""Classes of an engine's source: found through its imports, with their bases, without importing anything."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from specfix.engines.source.tree import SourceTree, dotted

PACKAGE = "vllm"  # head of its own absolute imports, wherever the folder stands
PLATFORM_TESTS = {"cuda": True, "cuda_alike": True, "rocm": False, "xpu": False, "cpu": False, "tpu": False}
MAX_HOPS = 12  # imports followed for one name; a circle of re-exports must end


@dataclass(frozen=True, eq=False, slots=True)
class Class:
    """One class statement. Two of them are the same where their nodes are."""

    file: str
    node: ast.ClassDef

    @property
    def name(self) -> str:
        return self.node.name

    def members(self) -> dict[str, ast.stmt]:
        """Names bound in the body: methods, attributes, annotations, nested classes."""
        found: dict[str, ast.stmt] = {}
        for statement in _flat(self.node.body):
            for name in _bound(statement):
                found[name] = statement
        return found


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

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._lineages: dict[ast.ClassDef, Lineage] = {}

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
        found: list[Class | None] = []
        bound = False
        for statement in _flat(module.body):
            if isinstance(statement, ast.ClassDef) and statement.name == name:
                found, bound = [*found, Class(file, statement)], True
            elif isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    if (alias.asname or alias.name) == name:
                        found, bound = [*found, *self._imported(file, statement, alias.name, hops)], True
            elif isinstance(statement, ast.Import):
                bound = bound or any((a.asname or a.name.partition(".")[0]) == name for a in statement.names)
            elif name in _bound(statement):
                bound = True
                value = getattr(statement, "value", None)
                if isinstance(value, ast.Name) and value.id != name:
                    found += self.named(file, value.id, hops + 1)
                elif not (isinstance(value, ast.Constant) and value.value is None):
                    found.append(None)  # made by a call; ``= None`` is only a placeholder for a failed import
        return _unique(found) if bound else self._lazy(file, module, name, hops)

    def _lazy(self, file: str, module: ast.Module, name: str, hops: int) -> list[Class | None]:
        """A name that the module's own ``__getattr__`` hands on from a module that it imports."""
        getters = [s for s in module.body if isinstance(s, ast.FunctionDef) and s.name == "__getattr__"]
        statements = (statement for getter in getters for statement in _flat(getter.body))
        for statement in (each for each in statements if isinstance(each, ast.ImportFrom)):
            for alias in statement.names:
                target = self._file(f"{self._absolute(file, statement)}.{alias.name}")
                for found in self.named(target, name, hops + 1) if target else ():
                    if found is not None:
                        return [found]
        return [None]

    def lineage(self, cls: Class) -> Lineage:
        """The method resolution order of ``cls``, as far as the source tells."""
        if cls.node not in self._lineages:
            self._lineages[cls.node] = Lineage((cls,), False)  # for a circle of bases
            self._lineages[cls.node] = self._linearize(cls)
        return self._lineages[cls.node]

    def _linearize(self, cls: Class) -> Lineage:
        complete = True
        bases: list[Lineage] = []
        for expression in cls.node.bases:
            candidates = self.of_expression(cls.file, expression)
            complete = complete and len(candidates) <= 1 and None not in candidates
            known = [candidate for candidate in candidates if candidate is not None]
            bases += [self.lineage(base) for base in known[:1]]
        merged = _merge([list(base.classes) for base in bases] + [[base.classes[0] for base in bases]])
        return Lineage((cls, *merged), complete and all(base.complete for base in bases))

    def of_expression(self, file: str, expression: ast.expr) -> list[Class | None]:
        """The classes that an expression in ``file`` may mean."""
        if isinstance(expression, ast.Subscript):  # Generic[T], Base["Key"]
            return self.of_expression(file, expression.value)
        if isinstance(expression, ast.Name):
            return [] if hasattr(builtins, expression.id) else self.named(file, expression.id)
        head, _, name = (dotted(expression) or "").rpartition(".")
        module = self._module_alias(file, head) if head else None
        if module is None:
            return [None]
        target = self._file(module)
        return self.named(target, name) if target else []

    def _imported(self, file: str, node: ast.ImportFrom, name: str, hops: int) -> list[Class | None]:
        module = self._absolute(file, node)
        if module.partition(".")[0] != PACKAGE:
            return []
        target = self._file(module)
        return [None] if target is None else self.named(target, name, hops + 1)

    def _module_alias(self, file: str, name: str) -> str | None:
        """The module that the dotted ``name`` means in ``file``: ``nn`` and ``torch.nn`` alike."""
        first, _, rest = name.partition(".")
        module = self._tree.module(file)
        for statement in _flat(module.body) if module else ():
            origin = f"{self._absolute(file, statement)}." if isinstance(statement, ast.ImportFrom) else ""
            for alias in statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else ():
                if (alias.asname or alias.name.partition(".")[0]) == first:
                    target = origin + (alias.name if alias.asname or origin else first)
                    return f"{target}.{rest}" if rest else target
        return None

    def _absolute(self, file: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        folder = [PACKAGE, *file.split("/")[:-1]]
        folder = folder[: len(folder) - node.level + 1]
        return ".".join([*folder, *([node.module] if node.module else [])])

    def _file(self, module: str) -> str | None:
        """File of a dotted module; a bare name is a module of the model folder, as the registry writes it."""
        head, _, rest = module.partition(".")
        path = (rest if head == PACKAGE else f"model_executor.models.{module}").replace(".", "/")
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if self._tree.module(file) is not None:
                return file
        return None


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


def _bound(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _unique(found: list[Class | None]) -> list[Class | None]:
    seen: dict[ast.ClassDef | None, Class | None] = {cls.node if cls else None: cls for cls in found}
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
