"""Which model runner the release will choose for this deployment.

The release's own conditions (``VllmConfig.use_v2_model_runner``) are decided over what the deployment says, by the
names of the engine's source; what neither side knows stays unknown.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from specfix.deployment import Draft, Hardware, Serving, Target
from specfix.engines import Engine
from specfix.engines.runner import ENVIRONMENT, VARIABLE, RunnerChoice, choose_runner
from specfix.errors import MissingFact
from specfix.facts.architecture import architecture_of


def runner(runners: tuple[str, ...], engine: Engine) -> str:
    """The runner, where it can be told."""
    if len(runners) > 1:
        raise MissingFact(f"which model runner {engine} chooses")
    return runners[0]


def runner_choices(
    target: Target,
    serving: Serving,
    method: str,
    engine: Engine,
    hardware: Hardware | None = None,
    has_triton: bool | None = None,
    draft: Draft | None = None,
) -> tuple[RunnerChoice, ...]:
    """What the release chooses: one choice where the hardware is known, else that of a GPU and that of a CPU."""
    values = engine_values(target, serving, method, engine, hardware, has_triton, draft)
    platforms = (True, False) if hardware is None else (hardware.platform == "cpu",)
    return engine.outcomes.recall(
        ("runner", values, platforms),
        lambda: tuple(choose_runner(engine.runner, values, cpu=cpu) for cpu in platforms),
    )


def runners(runner_choices: tuple[RunnerChoice, ...]) -> tuple[str, ...]:
    """Each runner that may be chosen: ("V1",), ("V2",), or both where it cannot be told."""
    choices = [choice.runner for choice in runner_choices]
    if choices[0] is None or len(set(choices)) > 1 or choices[0] not in {"V1", "V2"}:
        return ("V1", "V2")  # a refused start has no runner; that is not this fact's question
    return (choices[0],)


def engine_values(
    target: Target,
    serving: Serving,
    method: str,
    engine: Engine,
    hardware: Hardware | None,
    has_triton: bool | None,
    draft: Draft | None,
) -> dict[str, Any]:
    """What the deployment says, by the names of the engine's source."""
    values: dict[str, Any] = {
        "model_config.architecture": architecture_of(target, engine),
        "model_config.architectures": list(target.architectures),
        "model_config.hf_config.canvas_length": target.config.values.get("canvas_length"),
        "model_config.hf_config.quantization_config": target.config.values.get("quantization_config"),
        "parallel_config.pipeline_parallel_size": serving.pipeline_parallel_size,
        "parallel_config.tensor_parallel_size": serving.tensor_parallel_size,
        "speculative_config.method": method,
    }
    for name in engine.runner.defaults:  # what the user sets of it, by flag or key; the two have the fields' own names
        block, _, field = name.rpartition(".")
        given = serving.speculative if block == "speculative_config" else serving.flags
        if field in given:
            values[name] = given[field]
    if serving.flags.get("enable_lora"):
        values["lora_config"] = "given"
    values |= {f"model_config.{trait}": holds for trait, holds in traits(target, engine).items()}
    if has_triton is not None:
        values["HAS_TRITON"] = has_triton
    if hardware is not None:
        values["current_platform.is_rocm()"] = hardware.platform == "rocm"
    if draft is not None:
        of_draft = "speculative_config.draft_model_config"
        values[f"{of_draft}.hf_config.layer_types"] = draft.config.values.get("layer_types")
        values[f"{of_draft}.architectures"] = list(draft.architectures)
    if ENVIRONMENT in serving.env:
        values[VARIABLE] = serving.env[ENVIRONMENT]
    return values


def traits(target: Target, engine: Engine) -> dict[str, bool]:
    """What the release knows of the target by its class and config (is_hybrid, is_moe …), as far as it can be told."""
    facts = engine.traits
    found: dict[str, bool] = {}
    if facts.expert_keys is not None:
        with suppress(MissingFact):  # a class default that cannot be told leaves the trait open
            experts = target.config.find(*facts.expert_keys)
            # experts may also hide in per-block configs, so a model without these keys and with blocks is not decided
            if experts is not None or target.config.find("block_configs") is None:
                count = experts[1] if experts else 0
                one = count[0] if isinstance(count, list) and count else count  # as ``get_num_experts``
                found["is_moe"] = bool(one)
    name = architecture_of(target, engine)
    if name in engine.methods.architectures and name not in facts.unreadable:
        for trait, having in facts.having.items():
            found[trait] = name in having
        if found.get("is_hybrid") and (types := target.config.find("layer_types")):
            found["is_hybrid"] = not all(kind == "attention" for kind in types[1])
    return found
