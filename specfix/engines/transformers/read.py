"""Read the config classes of one Transformers, and the names of its model classes, from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from specfix.engines.facts.classes import ConfigClass
from specfix.engines.source.classes import Class, Lineage
from specfix.engines.source.defaults import Defaults
from specfix.engines.source.symbolic.machine import ROOTS
from specfix.engines.source.tree import SourceTree, dotted, literal, walk
from specfix.engines.transformers.lookup import BASE, CHECKS, COUNTS, FIELDS, State, same
from specfix.errors import CannotCheck

PACKAGE = "transformers"
ROOT_FILE = "configuration_utils.py"
MAPPING = "CONFIG_MAPPING_NAMES"
LAYERS_CHECK = "validate_layer_type"  # strict classes run all methods of such names
OTHER_FRAMEWORKS = ("modeling_tf_", "modeling_flax_")
MAPPING_FILES = ("models/auto/auto_mappings.py", "models/auto/configuration_auto.py")


def read_classes(package: Path) -> dict[str, State]:
    """Each model type's config class of the Transformers package folder ``package``, without what is its base class's;
    under their own names the base class and those inner classes that are no model type's. The base class is marked
    where it and all others are ``strict``, and where it counts layers; a class whose own check takes the place of that
    is marked, too. CannotCheck where it is no such package."""
    tree = SourceTree(package)
    types = dict(_mapping(tree))
    reader = Defaults(tree, PACKAGE)
    root = next(
        (node for node in walk(tree.module(ROOT_FILE) or ast.Module([], []), ast.ClassDef) if node.name in ROOTS), None
    )
    if not types or root is None:
        raise CannotCheck(f"{package} is no readable Transformers package")
    index = _index(tree)
    base = Class(ROOT_FILE, root)
    found = {BASE: _state(reader.read(base))}
    checked = _is_strict(tree, base)
    wanted = dict(types)
    while wanted:
        name, class_name = wanted.popitem()
        if name in found or class_name not in index:
            continue
        checked = checked and _is_strict(tree, index[class_name])
        facts = reader.read(index[class_name])
        for key, part in facts.parts.items():
            if key not in facts.named_parts and part:
                facts.parts[key] = key_of(index.get(part), part, types)
                wanted.setdefault(facts.parts[key], part)
        found[name] = _without(_state(facts), found[BASE])
        if not _leaves_check(reader.classes.lineage(index[class_name])):
            found[name][COUNTS] = False
    counts = checked and _counts_layers(base)
    found[BASE] |= {CHECKS: True} if checked else {}
    found[BASE] |= {COUNTS: True} if counts else {}
    return found


def _counts_layers(base: Class) -> bool:
    """``… self.num_hidden_layers != len(layers): raise``."""
    check = base.members().get(LAYERS_CHECK)
    return any(
        "self.num_hidden_layers != len(" in ast.unparse(branch.test) and isinstance(branch.body[0], ast.Raise)
        for branch in (walk(check, ast.If) if check else ())
    )


def _leaves_check(lineage: Lineage) -> bool:
    """Whether that check is the base class's."""
    found = lineage.find(LAYERS_CHECK)
    return found is None or found[0].file == ROOT_FILE


def read_models(package: Path) -> set[str]:
    """The model classes that the Transformers package folder ``package`` hands out."""
    found: set[str] = set()
    for file in (package / "models").rglob("modeling_*.py"):
        if not file.name.startswith(OTHER_FRAMEWORKS):
            found |= set(_handed_out(file.read_text("utf-8", "replace")))
    return found


def key_of(cls: Class | None, name: str, types: dict[str, str]) -> str:
    """The name that a class goes by in the data: its model type, or its own name where it is no model type's."""
    stated = cls.members().get("model_type") if cls else None
    value = getattr(stated, "value", None)
    model_type = value.value if isinstance(value, ast.Constant) else None
    return str(model_type) if types.get(str(model_type)) == name else name


def _handed_out(text: str) -> list[str]:
    """What a module lists as ``__all__``, with which it ends. What stands before is long, and is not parsed."""
    start = text.rfind("\n__all__ = [")
    try:
        body = ast.parse(text[start:] if start >= 0 else "").body
    except SyntaxError:
        return []
    names = literal(getattr(body[0], "value", None)) if body else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _mapping(tree: SourceTree) -> Iterator[tuple[str, str]]:
    """Model types with the names of their classes, wherever the release keeps them."""
    for file in MAPPING_FILES:
        module = tree.module(file)
        for statement in module.body if module else ():
            value = getattr(statement, "value", None)
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            own = any(isinstance(target, ast.Name) and target.id == MAPPING for target in targets)
            if own or (isinstance(value, ast.Call) and dotted(value.func) == f"{MAPPING}.update"):
                yield from _pairs(value)


def _pairs(value: ast.AST | None) -> Iterator[tuple[str, str]]:
    for node in walk(value, ast.expr) if value else ():
        parts = [node.elts] if isinstance(node, ast.Tuple) else []
        if isinstance(node, ast.Dict):
            parts = [[key, each] for key, each in zip(node.keys, node.values, strict=True) if key is not None]
        for part in parts:
            texts = [each.value for each in part if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if len(texts) == len(part) == 2:
                yield texts[0], texts[1]


def _is_strict(tree: SourceTree, cls: Class) -> bool:
    """Whether huggingface_hub's ``strict`` decorates the class: it refuses a value that a field's type does not take.
    Some classes import it from where the base class is, which is asked first."""
    module = tree.module(cls.file)
    names = {
        alias.asname or alias.name
        for statement in (module.body if module else ())
        if isinstance(statement, ast.ImportFrom) and _has_strict(statement, cls.file)
        for alias in statement.names
        if alias.name == "strict"
    }
    return any(dotted(each.func if isinstance(each, ast.Call) else each) in names for each in cls.node.decorator_list)


def _has_strict(statement: ast.ImportFrom, file: str) -> bool:
    module = statement.module or ""
    if file != ROOT_FILE and statement.level == file.count("/") + 1:
        return module == ROOT_FILE.removesuffix(".py")
    return not statement.level and module.partition(".")[0] == "huggingface_hub"


def _index(tree: SourceTree) -> dict[str, Class]:
    """Config classes by name."""
    found: dict[str, Class] = {}
    for file in tree.files("models"):
        if file.rpartition("/")[2].startswith("configuration_"):
            module = tree.module(file)
            for statement in module.body if module else ():
                if isinstance(statement, ast.ClassDef):
                    found.setdefault(statement.name, Class(file, statement))
    return found


def _state(cls: ConfigClass) -> State:
    return {section: content for section, content in asdict(cls).items() if content}


def _without(state: State, base: State) -> State:
    """``state`` without the fields that are just as the base class has them."""
    result = dict(state)
    for section in FIELDS:
        theirs = base.get(section, {})
        kept = {
            name: each
            for name, each in state.get(section, {}).items()
            if name not in theirs or not same(theirs[name], each)
        }
        result[section] = kept
    return {section: content for section, content in result.items() if content}
