"""Between which numbers a flag's value must lie: as the config class says that the engine's arguments are put into."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from specfix.engines.facts.requests import Range
from specfix.engines.source.lookup import defined_in, fields_of
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

ARGUMENTS = "engine/arg_utils.py"
CLASS, CREATE = "EngineArgs", "create_engine_config"
BOUNDS: Mapping[str, str] = {"ge": "at_least", "gt": "above", "le": "at_most", "lt": "below"}


def read_flag_bounds(tree: SourceTree) -> dict[str, Range]:
    """By flag: ``CacheConfig(gpu_memory_utilization=self.gpu_memory_utilization)``, where the field is
    ``gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)``. Not of a config that is made in some cases
    only."""
    function = tree.function(ARGUMENTS, f"{CLASS}.{CREATE}")
    found: dict[str, Range] = {}
    branches = [branch for kind in (ast.If, ast.IfExp) for branch in (walk(function, kind) if function else ())]
    sometimes = {id(call) for branch in branches for call in walk(branch, ast.Call)}
    for call in walk(function, ast.Call) if function else ():
        if id(call) in sometimes:
            continue
        name = dotted(call.func) or ""
        file = defined_in(tree, ARGUMENTS, name) if name.endswith("Config") else None
        node = tree.class_(file, name) if file else None
        fields = fields_of(node) if node else {}
        for keyword in call.keywords:
            owner, _, argument = (dotted(keyword.value) or "").partition(".")
            is_flag = owner == "self" and not argument.startswith("_")
            if is_flag and keyword.arg in fields and (bounds := _bounds(fields[keyword.arg])):
                found[argument.replace("_", "-")] = Range(**bounds)
    return dict(sorted(found.items()))


def _bounds(field: ast.AnnAssign) -> dict[str, float]:
    """Those of ``Field(…)``."""
    call = field.value
    if not isinstance(call, ast.Call) or dotted(call.func) != "Field":
        return {}
    stated = {BOUNDS[each.arg]: literal(each.value) for each in call.keywords if each.arg and each.arg in BOUNDS}
    return {name: value for name, value in stated.items() if isinstance(value, int | float)}
