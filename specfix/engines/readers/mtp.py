"""Read which drafts are built-in ones, and what ``SpeculativeConfig.hf_config_override`` makes of their configs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specfix.engines.facts.speculative import MtpFacts, Override
from specfix.engines.readers.annotations import Unreadable, allowed
from specfix.engines.readers.overrides import read_overrides
from specfix.engines.readers.paths import Paths, Reached
from specfix.engines.readers.speculative import CLASS
from specfix.engines.source.lift import Lifter
from specfix.engines.source.lookup import module_constant
from specfix.engines.source.tree import SourceTree, find_function, literal

ALIAS = "MTPModelTypes"
TUPLE = "MTP_MODEL_TYPES"  # of releases before it was a Literal
OVERRIDE = "hf_config_override"
MODEL_TYPE = ["name", "draft_model_config.hf_config.model_type"]
METHOD = ["name", "method"]


def read_mtp(tree: SourceTree, unknown: dict[str, str]) -> MtpFacts:
    file = tree.config_file(CLASS)
    node = tree.class_(file, CLASS) if file else None
    if file is None or node is None:
        for fact in ("model_types", "method", "aliases", "overrides"):
            unknown[f"mtp.{fact}"] = f"no {CLASS}"
        return MtpFacts()
    start = find_function(node, "__post_init__")
    reached = list(Paths(Lifter(tree, file, CLASS)).of(start)) if start else []
    chosen = next(_chosen(tree, file, reached), None)
    if chosen is None:
        unknown["mtp.model_types"] = unknown["mtp.method"] = f"no method is chosen by a list of model types in {file}"
    method = chosen[1] if chosen else None
    function = find_function(node, OVERRIDE)
    overrides: tuple[Override, ...] | None = None
    if function is None:
        unknown["mtp.overrides"] = f"no {OVERRIDE} in {file}"
    else:
        overrides = read_overrides(tree, file, function, unknown)
    return MtpFacts(
        model_types=chosen[0] if chosen else None,
        method=method,
        aliases=_aliases(reached, method),
        overrides=overrides,
    )


def _chosen(tree: SourceTree, file: str, reached: list[Reached]) -> Iterator[tuple[tuple[str, ...], str]]:
    """``if … model_type in (…): self.method = …``, where the list is that of the built-in drafts."""
    named = _named(tree, file)
    for each in reached:
        if not (isinstance(each.node, ast.Assign) and ast.unparse(each.node.targets[0]) == "self.method"):
            continue
        last = each.when[-1] if each.when[0] == "and" else each.when
        for test in last[1:] if last[0] == "or" else [last]:
            if test[0] == "in" and test[1] == MODEL_TYPE and test[2][0] == "const":
                types, method = tuple(map(str, test[2][1])), literal(each.node.value)
                if (named is None or types == named) and isinstance(method, str):
                    yield types, method


def _named(tree: SourceTree, file: str) -> tuple[str, ...] | None:
    try:
        return tuple(map(str, allowed(tree, file, ast.Name(ALIAS)).only or ()))
    except Unreadable:
        types = module_constant(tree, file, TUPLE)
        return tuple(map(str, types)) if isinstance(types, tuple) else None


def _aliases(reached: list[Reached], method: str | None) -> tuple[str, ...]:
    """Methods that are renamed: ``if self.method in (…): self.method = "mtp"``."""
    for each in reached:
        if isinstance(each.node, ast.Assign) and ast.unparse(each.node.targets[0]) == "self.method":
            tests = each.when[1:] if each.when[0] == "and" else [each.when]
            lists = [test[2][1] for test in tests if test[0] == "in" and test[1] == METHOD and test[2][0] == "const"]
            if literal(each.node.value) == method and lists:
                return tuple(str(name) for name in lists[-1] if name != method)
    return ()
