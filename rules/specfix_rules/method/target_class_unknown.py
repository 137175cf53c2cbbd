"""MTH017: no class for the target, neither in the release's registry nor in Transformers."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving, Target
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.architecture import brought_along, has_no_class

ELSEWHERE = ("terratorch",)  # values of --model-impl: one class serves whatever is named
STATED = "architectures"


@rule(
    "MTH017",
    "target-class-unknown",
    severity="error",
    evidence=[
        "vllm/model_executor/models/registry.py: _try_resolve_transformers",
        "vllm/model_executor/models/registry.py: _raise_for_unsupported",
    ],
    requires=["MTH004", "MTH015"],
)
def target_class_unknown(target: Target, serving: Serving, engine: Engine) -> Iterator[Finding]:
    """Neither the release nor the Transformers that it asks for has a class of the target's architectures."""
    if serving.flag("model_impl") in ELSEWHERE or serving.flag("config_format") == "mistral":
        raise NotApplicable("the class is not taken from the target's architectures")
    own = engine.configs.classes.get((engine.configs.types or {}).get(str(target.config.values.get("model_type")), ""))
    if own is not None and (STATED in own.derived or STATED in own.unknown):
        raise MissingFact(f"which architectures {engine}'s own {own.name} makes of those in {target.config.file}")
    if not has_no_class(target.architectures, target, engine):
        return
    brought_along(serving)
    dropped = [release for name in target.architectures if (release := (engine.methods.dropped or {}).get(name))]
    until = f" It had it until {dropped[0]}." if dropped else ""
    yield Finding(
        f"The target's architectures is {show(list(target.architectures))}. {engine} has no class of that name, and no "
        f"known Transformers in {engine.requirements.transformers or 'any version'} has one to fall back on: the start "
        f"ends when the class is looked up.{until}",
        target.at(STATED),
        "config",
        "likely",
        related=(target.at("model_type"),),
        repair=Repair(
            "manual", "take a release that has the target's class (`specfix engine` lists them)", ("engine_args",)
        ),
    )
