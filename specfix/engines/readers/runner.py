"""Read which model runner a release chooses (``use_v2_model_runner``), and what each runner refuses."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from specfix.engines.facts.decisions import RunnerFacts, Step
from specfix.engines.runner import ENVIRONMENT, VARIABLE
from specfix.engines.source.joining import TRUE
from specfix.engines.source.lift import RAISES, Lifter
from specfix.engines.source.lookup import config_class, fields_of
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

CONFIG = "config/vllm.py"
WORKER = "v1/worker/gpu_worker.py"
CPU_WORKER = "v1/worker/cpu_worker.py"
CHOICE = "use_v2_model_runner"
V2_FEATURES = "_get_v2_model_runner_unsupported_features"
V1_FEATURES = "_get_v1_model_runner_unsupported_features"
VALIDATION = "_validate_v2_model_runner"

_OUTCOMES = {True: "V2", False: "V1", None: "V1", RAISES: "refused"}


def read_runner(tree: SourceTree, unknown: dict[str, str]) -> RunnerFacts:
    lifter = Lifter(tree, CONFIG, "VllmConfig", lists={V2_FEATURES: "unsupported"})
    if tree.function(CONFIG, f"VllmConfig.{CHOICE}"):
        steps = [replace(step, then=_OUTCOMES[step.then]) for step in lifter.ways(CHOICE)]
    else:
        steps = _by_variable_alone(tree)
    v2 = _features(lifter, V2_FEATURES) or _features(lifter, VALIDATION)
    v1 = _features(lifter, V1_FEATURES)
    return RunnerFacts(
        steps=tuple(steps),
        unsupported=tuple(v2),
        forced_is_validated=_calls(tree, VALIDATION),
        cpu=_on_cpu(tree, unknown),
        v1_unsupported=tuple(v1),
        v2_needs_triton=_needs_triton(tree, lifter),
        defaults=_defaults(tree, lifter, [*steps, *v2, *v1]),
    )


def _by_variable_alone(tree: SourceTree) -> list[Step]:
    """Before the choice was a property of the config, the worker read the variable, if there was one."""
    last = Step(TRUE, "V1", 0)
    module = tree.module(WORKER)
    for node in walk(module, ast.Attribute) if module else ():
        if node.attr == ENVIRONMENT:
            return [Step(["name", VARIABLE], "V2", node.lineno), last]
    return [last]


def _features(lifter: Lifter, method: str) -> list[Step]:
    return lifter.texts(method) if lifter.tree.function(CONFIG, f"VllmConfig.{method}") else []


def _calls(tree: SourceTree, method: str) -> bool:
    module = tree.module(CONFIG)
    return any(dotted(call.func) == f"self.{method}" for call in (walk(module, ast.Call) if module else ()))


def _on_cpu(tree: SourceTree, unknown: dict[str, str]) -> Literal["V1", "as chosen"] | None:
    module = tree.module(CPU_WORKER)
    if module is None:
        unknown["runner.cpu"] = f"no {CPU_WORKER}"
        return None
    asks = any(node.attr == CHOICE for node in walk(module, ast.Attribute))
    return "as chosen" if asks else "V1"


def _needs_triton(tree: SourceTree, lifter: Lifter) -> bool:
    """Whether a V2 runner without Triton is refused, by the config or by the worker's constructor."""
    raising: list[Step] = []
    if tree.function(CONFIG, f"VllmConfig.{VALIDATION}"):
        raising += lifter.ways(VALIDATION)
    if tree.function(WORKER, "Worker.__init__"):
        raising += Lifter(tree, WORKER, "Worker").ways("__init__")
    return any(step.then == RAISES and "HAS_TRITON" in step.names for step in raising)


def _defaults(tree: SourceTree, lifter: Lifter, steps: Iterable[Step]) -> dict[str, object]:
    """Literal defaults of the config fields that the conditions name, and of the environment variable.

    Objects whose attributes are named too (speculative_config) are left out: being there is no default.
    """
    found: dict[str, object] = {}
    named = set().union(*(step.names for step in steps))
    for name in {name for name in named if not any(other.startswith(f"{name}.") for other in named)}:
        if name == VARIABLE:
            found[name] = _default_of_variable(tree)
            continue
        base, _, attribute = name.rpartition(".")
        home = config_class(tree, CONFIG, "VllmConfig", base) if base else (CONFIG, "VllmConfig")
        node = tree.class_(*home) if home else None
        statement = fields_of(node).get(attribute) if node else None
        if statement is not None:
            is_literal, value = _default(statement)
            annotation = ast.unparse(statement.annotation)
            # ``x: SomeConfig = None`` is filled in by the engine: that None says nothing
            if is_literal and not (value is None and "Config" in annotation and "None" not in annotation):
                found[name] = value
        elif name in lifter.defaults and not name.startswith("model_config") and "hf_config" not in name:
            found[name] = lifter.defaults[name]  # getattr() of a field that this release does not have
    return dict(sorted(found.items()))


def _default(statement: ast.AnnAssign) -> tuple[bool, object]:
    """Whether a field's default is a literal, and its value."""
    value = statement.value
    if isinstance(value, ast.Call):  # Field(default=1, ge=1), field(default=...)
        stated = [keyword.value for keyword in value.keywords if keyword.arg == "default"]
        value = stated[0] if stated else None
    if isinstance(value, ast.Constant):
        return True, value.value
    return (value is not None and literal(value) is not None), literal(value)


def _default_of_variable(tree: SourceTree) -> object:
    """None or False, as the annotation in envs.py states it."""
    module = tree.module("envs.py")
    for node in walk(module, ast.AnnAssign) if module else ():
        if isinstance(node.target, ast.Name) and node.target.id == ENVIRONMENT:
            return literal(node.value)
    return None
