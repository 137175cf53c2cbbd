"""What an annotation of a config class's field lets a value be, with the names in it looked up through imports."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from specfix.engines.source.imports import file_of
from specfix.engines.source.lookup import imported_from
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

_DEPTH = 12  # names followed; a circle of aliases must end


class Unreadable(Exception):
    """An annotation whose meaning cannot be told; the message says why."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """``names`` of types; ``choices`` of a Literal or enum among them, None where there is none."""

    names: tuple[str, ...] = ()
    choices: tuple[object, ...] | None = None
    nullable: bool = False
    validated: bool = True

    @property
    def only(self) -> tuple[object, ...] | None:
        """The values that are allowed, None where any of its type is: Literal["a"] | str takes all texts."""
        return self.choices if not self.names else None

    @property
    def type(self) -> str:
        kinds = dict.fromkeys(type(choice).__name__ for choice in self.choices or ())
        return " | ".join(dict.fromkeys([*kinds, *self.names])) or "Any"


def allowed(tree: SourceTree, file: str, node: ast.expr, enum_names: bool = False) -> Allowed:
    """What ``node``, an annotation in ``file``, allows. Members of an enum by their names, or else by their values.
    Raises Unreadable."""
    return _Annotations(tree, enum_names).read(file, node, 0)


@dataclass(frozen=True, slots=True)
class _Annotations:
    tree: SourceTree
    enum_names: bool

    def read(self, file: str, node: ast.expr, depth: int) -> Allowed:
        if depth > _DEPTH:
            raise Unreadable("a circle of names")
        match node:
            case ast.Constant(value=None):
                return Allowed(nullable=True)
            case ast.Constant(value=str(text)):
                return self.read(file, ast.parse(text, mode="eval").body, depth + 1)
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                return self._union(file, [left, right], depth)
            case ast.Subscript(value=of, slice=inner):
                parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                return self._generic(file, node, (dotted(of) or "").rpartition(".")[2], parts, depth)
            case ast.Name(id=name):
                return self._name(file, name, depth)
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                return self._name(self._module(file, module), name, depth)
        raise Unreadable(f"{ast.unparse(node)} is not understood")

    def _generic(self, file: str, node: ast.expr, kind: str, parts: Sequence[ast.expr], depth: int) -> Allowed:
        if kind == "Literal":
            values = tuple(dict.fromkeys(self._values(file, parts, depth)))
            return Allowed(choices=tuple(v for v in values if v is not None), nullable=None in values)
        if kind == "Union":
            return self._union(file, parts, depth)
        if kind == "Optional":
            return replace(self.read(file, parts[0], depth + 1), nullable=True)
        if kind == "SkipValidation":
            return replace(self.read(file, parts[0], depth + 1), nullable=True, validated=False)
        if kind in {"list", "tuple", "dict", "set"}:
            return Allowed((ast.unparse(node),))
        raise Unreadable(f"{ast.unparse(node)} is not understood")

    def _union(self, file: str, parts: Sequence[ast.expr], depth: int) -> Allowed:
        each = [self.read(file, part, depth + 1) for part in parts]
        choices = [choice for one in each for choice in one.choices or ()]
        return Allowed(
            names=tuple(dict.fromkeys(name for one in each for name in one.names)),
            choices=tuple(dict.fromkeys(choices)) or None,
            nullable=any(one.nullable for one in each),
            validated=all(one.validated for one in each),
        )

    def _values(self, file: str, parts: Sequence[ast.expr], depth: int) -> Iterator[object]:
        """Values of a Literal, with the Literals that it names in their places."""
        for part in parts:
            if isinstance(part, ast.Constant):
                yield part.value
            else:
                inner = self.read(file, part, depth + 1)
                if inner.only is None:
                    raise Unreadable(f"{ast.unparse(part)} is no Literal")
                yield from inner.only

    def _name(self, file: str, name: str, depth: int) -> Allowed:
        if isinstance(getattr(builtins, name, None), type):
            return Allowed((name,))
        module = self.tree.module(file)
        for statement in reversed(list(runtime_statements(module.body if module else ()))):
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    return self.read(file, value, depth + 1)
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                    return self.read(file, value, depth + 1)
                case ast.ClassDef(name=target) if target == name:
                    return self._class(statement)
        if name == "Any":
            return Allowed(("Any",), nullable=True)
        origin = imported_from(self.tree, file, name)
        if origin is None or origin == file:
            raise Unreadable(f"{name} is not found from {file}")
        return self._name(origin, name, depth + 1)

    def _class(self, node: ast.ClassDef) -> Allowed:
        if not any((dotted(base) or "").rpartition(".")[2] in {"Enum", "StrEnum", "IntEnum"} for base in node.bases):
            return Allowed((node.name,))
        members = [(s.targets[0], s.value) for s in node.body if isinstance(s, ast.Assign) and len(s.targets) == 1]
        named = [(target.id, value) for target, value in members if isinstance(target, ast.Name)]
        public = [(name, value) for name, value in named if not name.startswith("_")]
        if self.enum_names:
            return Allowed(choices=tuple(name for name, _ in public))
        values = [literal(value) for _, value in public]
        if None in values:
            raise Unreadable(f"{node.name} has members that are no literals")
        return Allowed(choices=tuple(values))

    def _module(self, file: str, alias: str) -> str:
        """The file that ``alias`` means in ``file``: an import, or a module that is loaded when it is first used."""
        module = self.tree.module(file)
        for statement in runtime_statements(module.body if module else ()):
            if isinstance(statement, ast.Import):
                paths = [a.name for a in statement.names if a.asname == alias]
            elif isinstance(statement, ast.Assign) and any(dotted(target) == alias for target in statement.targets):
                paths = [str(c.value) for c in walk(statement.value, ast.Constant) if "." in str(c.value)]
            else:
                continue
            for path in paths:
                home = file_of(self.tree, path.partition(".")[2])
                if home is not None:
                    return home
        raise Unreadable(f"the module {alias} is not found from {file}")


def runtime_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module's body that run: not those for type checkers alone."""
    for statement in body:
        if isinstance(statement, ast.If):
            checking = (dotted(statement.test) or "").endswith("TYPE_CHECKING")
            yield from runtime_statements([] if checking else statement.body)
            yield from runtime_statements(statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from runtime_statements([*statement.body, *statement.orelse])
        else:
            yield statement
