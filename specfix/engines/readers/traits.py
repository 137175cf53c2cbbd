"""Read what sets architectures apart for the choice of a runner: hybrid, attention-free, with inner state, MoE."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from specfix.engines.facts.drafting import MethodFacts, TraitFacts
from specfix.engines.readers.demands import demands
from specfix.engines.source.classes import Classes
from specfix.engines.source.tree import SourceTree, config_homes, literal

TRAITS = ("is_hybrid", "is_attention_free", "has_inner_state")
CONFIGS = config_homes("model")
ALIASES = "transformers_utils/config.py"
EXPERTS = (
    ("transformers_utils/model_arch_config_convertor.py", "get_num_experts"),
    *((file, name) for name in ("get_num_experts", "_verify_with_expert_parallelism") for file in CONFIGS),
)


def read_traits(
    tree: SourceTree, unknown: dict[str, str], methods: MethodFacts, plain: Iterable[str] = ()
) -> TraitFacts:
    """``plain``: architectures of targets of plain decoder layers."""
    classes = Classes(tree)
    having: dict[str, list[str]] = {trait: [] for trait in TRAITS}
    unreadable: list[str] = []
    for architecture, path in sorted(methods.architectures.items()):
        found = classes.at(path)
        lineages = [classes.lineage(cls) for cls in found if cls is not None]
        if None in found or not all(lineage.complete for lineage in lineages):
            unreadable.append(architecture)
            unknown[f"traits.having.{architecture}"] = "its class or a base of it could not be followed"
        for trait in TRAITS:
            marks = [lineage.find(trait) for lineage in lineages]
            if any(literal(getattr(mark[1], "value", None)) is True for mark in marks if mark):
                having[trait].append(architecture)
    asking = {name: demands(tree, classes, methods.architectures.get(name, "")) for name in {*methods.drafts, *plain}}
    asked = {name: found for name, found in sorted(asking.items()) if found is not None}
    return TraitFacts(
        {trait: tuple(names) for trait, names in having.items()},
        tuple(unreadable),
        expert_keys(tree, unknown),
        silu_only=tuple(name for name, (silu, _, _) in asked.items() if silu),
        window_read=tuple(name for name, (_, window, _) in asked.items() if window),
        keys_read={name: keys for name, (_, _, keys) in asked.items() if name in methods.drafts},
    )


def expert_keys(tree: SourceTree, unknown: dict[str, str]) -> tuple[str, ...] | None:
    """The key names in ``get_num_experts``, of old in what verifies expert parallelism: a list there, or an entry of
    a table that it names."""
    for file, name in EXPERTS:
        function = tree.function(file, name)
        for node in ast.walk(function) if function else ():
            names = literal(node) if isinstance(node, ast.List) else None
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                table = literal(assigned(tree.module(ALIASES), node.value.id))
                names = table.get(literal(node.slice)) if isinstance(table, dict) else None
            if isinstance(names, list | tuple) and names and all(isinstance(key, str) for key in names):
                return tuple(names)
    unknown["traits.expert_keys"] = "no list of key names in get_num_experts"
    return None


def assigned(module: ast.Module | None, name: str) -> ast.expr | None:
    """What ``name`` is bound to at the top of ``module``."""
    for node in module.body if module else ():
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return getattr(node, "value", None)
    return None
