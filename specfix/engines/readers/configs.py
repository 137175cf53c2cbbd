"""vLLM's own config classes, which it takes before Transformers'."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specfix.engines.facts.classes import ConfigClass, ConfigClassFacts
from specfix.engines.source.classes import Class
from specfix.engines.source.defaults import Defaults
from specfix.engines.source.tree import SourceTree, literal, walk

FILE = "transformers_utils/config.py"
FOLDER = "transformers_utils/configs"
PACKAGE = "vllm"
REGISTRY = "_CONFIG_REGISTRY"


def read_configs(tree: SourceTree, unknown: dict[str, str]) -> ConfigClassFacts:
    """The classes of ``_CONFIG_REGISTRY`` (transformers_utils/config.py), and those that they hold."""
    module = tree.module(FILE)
    types = dict(_registered(module)) if module else {}
    if not types:
        unknown["configs.types"] = f"{REGISTRY} is not found in {FILE}"
        return ConfigClassFacts()
    reader = Defaults(tree, PACKAGE)
    index = _index(tree)
    classes: dict[str, ConfigClass] = {}
    wanted = sorted(set(types.values()))
    while wanted:
        name = wanted.pop()
        if name in classes:
            continue
        cls = index.get(name) or _elsewhere(reader, name)
        if cls is None:  # registered again from Transformers itself
            classes[name] = ConfigClass(name, base=name)
            continue
        found = classes[name] = reader.read(cls)
        wanted += [part for key, part in found.parts.items() if part in index and key not in found.named_parts]
    return ConfigClassFacts(
        dict(sorted(types.items())), dict(sorted(classes.items())), _typed(tree), _heads_within(tree, unknown)
    )


def _heads_within(tree: SourceTree, unknown: dict[str, str]) -> bool | None:
    """``if text_config is not config and not hasattr(text_config, "num_attention_heads"): raise``, or the assertion of
    it, in ``get_hf_text_config``."""
    function = tree.function(FILE, "get_hf_text_config")
    if function is None:
        unknown["configs.heads_within"] = f"no get_hf_text_config in {FILE}"
        return None
    asserted = [node.test for node in walk(function, ast.Assert)]
    tests = [node.test for node in walk(function, ast.If) if any(isinstance(each, ast.Raise) for each in node.body)]
    return any("hasattr(text_config, 'num_attention_heads')" in ast.unparse(test) for test in (*asserted, *tests))


def _typed(tree: SourceTree) -> tuple[str, ...]:
    table = tree.assigned(FILE, "_ARCHITECTURE_TO_MODEL_TYPE")
    names = [literal(key) for key in table.keys if key] if isinstance(table, ast.Dict) else []
    return tuple(sorted(map(str, names)))


def _registered(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Model types with the names of their classes: a dict display or a call with keywords, with others spread in it."""
    for statement in module.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if isinstance(target, ast.Name) and target.id.startswith(REGISTRY):
            for node in walk(statement, ast.keyword):
                if node.arg is not None and (name := _class_name(node.value)):
                    yield node.arg, name
            for display in walk(statement, ast.Dict):
                for key, value in zip(display.keys, display.values, strict=True):
                    if isinstance(key, ast.Constant) and (name := _class_name(value)):
                        yield str(key.value), name


def _class_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return node.id if isinstance(node, ast.Name) else None


def _index(tree: SourceTree) -> dict[str, Class]:
    """Classes of the folder by name."""
    found: dict[str, Class] = {}
    for file in tree.files(FOLDER):
        module = tree.module(file)
        for statement in module.body if module else ():
            if isinstance(statement, ast.ClassDef):
                found.setdefault(statement.name, Class(file, statement))
    return found


def _elsewhere(reader: Defaults, name: str) -> Class | None:
    """A class whose module the folder's table of names gives (``_CLASS_TO_MODULE``), where it is vLLM's own."""
    module = reader.tree.module(f"{FOLDER}/__init__.py")
    for display in walk(module, ast.Dict) if module else ():
        for key, value in zip(display.keys, display.values, strict=True):
            path = value.value if isinstance(value, ast.Constant) else None
            if not isinstance(key, ast.Constant) or key.value != name or not isinstance(path, str):
                continue
            if path.startswith(f"{PACKAGE}."):
                return next((each for each in reader.classes.at(f"{path}.{name}") if each), None)
    return None
