"""Which keys the engine's config classes take: those that a flag makes of JSON text, and those nested in them.

A flag's text is handed to pydantic (``TypeAdapter(cls).validate_json``), which takes the fields of the class that are
made by ``__init__``, and drops others unless it is told to forbid them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from specfix.engines.facts.serving import ConfigClass
from specfix.engines.readers.annotations import Unreadable, allowed
from specfix.engines.source.imports import imported
from specfix.engines.source.lookup import defined_in, fields_of, imported_from
from specfix.engines.source.tree import SourceTree, dotted, find_function, literal, walk

ARGUMENTS = "engine/arg_utils.py"
OTHER_NAMES = frozenset({"alias", "validation_alias", "alias_priority"})  # of a field, by pydantic
PLAIN_BASES = frozenset({"object", "ABC", "Generic", "Protocol"})
PYDANTIC, STDLIB = "pydantic.dataclasses", "dataclasses"


def read_config_classes(
    tree: SourceTree, names: Iterable[str], unknown: dict[str, str]
) -> dict[str, ConfigClass | None]:
    """The classes of these names, as the engine's arguments know them, and those that they hold."""
    found: dict[str, ConfigClass | None] = {}
    waiting = [(ARGUMENTS, name) for name in names]
    while waiting:
        known_in, name = waiting.pop(0)
        if name in found:
            continue
        found[name] = None
        file = defined_in(tree, known_in, name)
        node = tree.class_(file, name) if file else None
        if file is None or node is None:
            unknown[f"serve.config_classes.{name}"] = f"{name} is not found from {known_in}"
            continue
        try:
            found[name] = made = _class(tree, file, node)
        except Unreadable as reason:
            unknown[f"serve.config_classes.{name}"] = f"{file}:{node.lineno}: {reason}"
            continue
        if made.refuses_others is None:
            unknown[f"serve.config_classes.{name}.refuses_others"] = f"how {name} is made is not understood"
        waiting += [(file, inner) for inner in made.nested.values()]
    return dict(sorted(found.items()))


def _class(tree: SourceTree, file: str, node: ast.ClassDef) -> ConfigClass:
    keys: dict[str, str | None] = {}
    for home, each in _lineage(tree, file, node):
        _refuse_other_ways(each)
        for name, field in fields_of(each).items():
            if _is_key(field):
                keys[name] = _nested(tree, home, field)
            else:
                keys.pop(name, None)
    return ConfigClass(
        keys=tuple(keys),
        nested={name: inner for name, inner in keys.items() if inner},
        refuses_others=refuses_others(tree, file, node),
    )


def _lineage(tree: SourceTree, file: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef]]:
    """The class and its bases, the furthest first. Raises Unreadable for a base that is not in the tree."""
    for base in node.bases:
        name = (dotted(base.value if isinstance(base, ast.Subscript) else base) or "").rpartition(".")[2]
        if name in PLAIN_BASES:
            continue
        home = defined_in(tree, file, name)
        inner = tree.class_(home, name) if home else None
        if home is None or inner is None:
            raise Unreadable(f"its base {ast.unparse(base)} is not found")
        yield from _lineage(tree, home, inner)
    yield file, node


def _refuse_other_ways(node: ast.ClassDef) -> None:
    """Raise Unreadable for a class that may take other keys than its fields."""
    for name in ("__init__", "__new__", "__get_pydantic_core_schema__"):
        if find_function(node, name) is not None:
            raise Unreadable(f"it has an {name} of its own")
    for function in walk(node, ast.FunctionDef):
        for call in (each for each in function.decorator_list if isinstance(each, ast.Call)):
            mode = next((literal(word.value) for word in call.keywords if word.arg == "mode"), None)
            if dotted(call.func) == "model_validator" and mode != "after":
                raise Unreadable(f"{function.name} sees the keys before they are read")
    for field in fields_of(node).values():
        if any(word.arg in OTHER_NAMES for call in walk(field, ast.Call) for word in call.keywords):
            raise Unreadable(f"{ast.unparse(field.target)} has another name")


def _is_key(field: ast.AnnAssign) -> bool:
    """Whether ``__init__`` takes the field."""
    if (dotted(_outer(field.annotation)) or "").rpartition(".")[2] == "ClassVar":
        return False
    made = field.value if isinstance(field.value, ast.Call) else None
    return not any(word.arg == "init" and literal(word.value) is False for word in made.keywords) if made else True


def _outer(annotation: ast.expr) -> ast.expr:
    return annotation.value if isinstance(annotation, ast.Subscript) else annotation


def _nested(tree: SourceTree, file: str, field: ast.AnnAssign) -> str | None:
    """The config class that the field's value must be, where it can be no other mapping."""
    try:
        kind = allowed(tree, file, field.annotation)
    except Unreadable:
        return None
    if len(kind.names) != 1 or kind.choices is not None or not kind.validated:
        return None
    (name,) = kind.names
    home = defined_in(tree, file, name) if name.isidentifier() else None
    node = tree.class_(home, name) if home else None
    return name if home and node and refuses_others(tree, home, node) is not None else None


def refuses_others(tree: SourceTree, file: str, node: ast.ClassDef) -> bool | None:
    """Whether pydantic forbids keys that are no field; None where that is not understood."""
    made = made_by(tree, file, node)
    return None if made is None else made[1]


def made_by(tree: SourceTree, file: str, node: ast.ClassDef) -> tuple[str, bool] | None:
    """The module of the ``dataclass`` that makes the class, and whether keys that are no field are forbidden; None
    where the decorators are not understood."""
    for decorator in node.decorator_list:
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
        origin, maker = _maker(tree, file, name)
        if maker is not None and not any(dotted(call.func) == "dataclass" for call in walk(maker, ast.Call)):
            continue  # it hands the class back as it is
        module = _imports_from(tree, origin or file, "dataclass")
        if (maker is None and name != "dataclass") or module not in {PYDANTIC, STDLIB}:
            return None
        return module, "forbid" in [_extra(scope) for scope in (decorator, maker) if scope is not None]
    return None


def _maker(tree: SourceTree, file: str, name: str) -> tuple[str | None, ast.FunctionDef | None]:
    """The function of the tree that ``name`` is in ``file``, and its file."""
    for origin in (file, imported_from(tree, file, name)):
        module = tree.module(origin) if origin else None
        function = find_function(module, name) if module else None
        if function is not None:
            return origin, function
    return None, None


def _imports_from(tree: SourceTree, file: str, name: str) -> str | None:
    """The module that ``file`` imports ``name`` from."""
    module = tree.module(file)
    for node in walk(module, ast.ImportFrom) if module else ():
        if name in imported(node):
            return node.module
    return None


def _extra(scope: ast.AST) -> object:
    """``extra="forbid"`` in some call."""
    return next((literal(k.value) for c in walk(scope, ast.Call) for k in c.keywords if k.arg == "extra"), None)
