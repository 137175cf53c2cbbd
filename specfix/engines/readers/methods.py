"""Read the speculative methods and the architectures that a release knows."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.readers.draft_classes import drafters, extra_slots_refuse, mla_types, renamings
from specfix.engines.source.tree import SourceTree, config_homes, literal, walk

SPECULATIVE = config_homes("speculative")
REGISTRY = "model_executor/models/registry.py"
NAME = "SpeculativeMethod"
ALL_MODELS = "_VLLM_MODELS"
DRAFTS = "_SPECULATIVE_DECODING_MODELS"
DROPPED = "_PREVIOUSLY_SUPPORTED_MODELS"
MULTIMODAL = "_MULTIMODAL_MODELS"
SUFFIXES = "_SUFFIX_TO_DEFAULTS"
SUFFIX_FILES = ("config/model.py", "config/__init__.py")
NORMALIZED = "_normalize_archs"  # of the release that exchanges two endings only, and writes them out


def read_methods(tree: SourceTree, unknown: dict[str, str]) -> MethodFacts:
    modules = [module for file in SPECULATIVE if (module := tree.module(file)) and _assigned(module, NAME)]
    methods = tuple(dict.fromkeys(_texts(_assigned(modules[0], NAME), modules[0]))) if modules else ()
    if not methods:
        unknown["methods.methods"] = f"no {NAME} in {SPECULATIVE[0]}"
    registry = tree.module(REGISTRY)
    architectures = dict(sorted(_entries(_assigned(registry, ALL_MODELS), registry))) if registry else {}
    if not architectures:
        unknown["methods.architectures"] = f"no {ALL_MODELS} in {REGISTRY}"
    drafts = tuple(name for name, _ in _entries(_assigned(registry, DRAFTS), registry)) if registry else ()
    if not drafts:
        unknown["methods.drafts"] = f"no {DRAFTS} in {REGISTRY}"
    dropped = literal(_assigned(registry, DROPPED)) if registry else None
    if not isinstance(dropped, dict):
        unknown["methods.dropped"] = f"no {DROPPED} in {REGISTRY}"
        dropped = None
    multimodal = tuple(sorted({n for n, _ in _entries(_assigned(registry, MULTIMODAL), registry)})) if registry else ()
    if not multimodal:
        unknown["methods.multimodal"] = f"no {MULTIMODAL} in {REGISTRY}"
    plain, heads = mla_types(tree)
    found = MethodFacts(
        methods,
        architectures,
        tuple(sorted(drafts)),
        dropped,
        multimodal=multimodal or None,
        renamed=renamings(tree),
        drafters=drafters(tree, methods),
        extra_slots_refuse=extra_slots_refuse(tree),
        mla_types=plain,
        mla_types_of_heads=heads,
        suffixes=_suffixes(tree),
    )
    for fact in ("suffixes", "renamed", "drafters", "extra_slots_refuse", "mla_types", "mla_types_of_heads"):
        if getattr(found, fact) is None:
            unknown[f"methods.{fact}"] = "the code that says so is not found"
    return found


def _suffixes(tree: SourceTree) -> tuple[str, ...] | None:
    """Endings that ``_normalize_arch`` puts in one another's places."""
    for file in SUFFIX_FILES:
        module = tree.module(file)
        table = literal(_assigned(module, SUFFIXES)) if module else None
        if isinstance(table, list) and all(isinstance(entry, tuple) and entry for entry in table):
            return tuple(str(entry[0]) for entry in table)
    function = tree.function(REGISTRY, NORMALIZED)
    for call in walk(function, ast.Call) if function else ():
        if isinstance(call.func, ast.Attribute) and call.func.attr == "replace":
            texts = [literal(argument) for argument in call.args]
            if len(texts) == 2 and all(isinstance(text, str) for text in texts):
                return tuple(map(str, texts))
    return None


def _assigned(module: ast.Module, name: str) -> ast.expr | None:
    for node in reversed(module.body):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return node.value
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return node.value
    return None


def _texts(node: ast.expr | None, module: ast.Module) -> Iterator[str]:
    """Values of a Literal, with the Literals that it names in their places."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name):
        yield from _texts(_assigned(module, node.id), module)
    elif isinstance(node, ast.Subscript):
        yield from _texts(node.slice, module)
    elif isinstance(node, ast.Tuple):
        for part in node.elts:
            yield from _texts(part, module)
    elif isinstance(node, ast.BinOp):  # X | Y
        yield from _texts(node.left, module)
        yield from _texts(node.right, module)


def _entries(node: ast.expr | None, module: ast.Module) -> Iterator[tuple[str, str]]:
    """Entries of the registry, with the dicts that it unpacks (``**{…}``) in their places."""
    if isinstance(node, ast.Name):
        node = _assigned(module, node.id)
    if not isinstance(node, ast.Dict):
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            yield from _entries(value, module)
            continue
        name, home = literal(key), literal(value)
        if isinstance(name, str) and isinstance(home, tuple) and len(home) == 2:
            yield name, f"{home[0]}:{home[1]}"
