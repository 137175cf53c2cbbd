"""MTH001: EAGLE3 asked of a target that this release cannot serve it for."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of, language_class
from specfix.facts.aux import AUX_METHODS

OWN = "vllm.models."  # where a model may have a class of its own for each platform; what is known is CUDA's


@rule(
    "MTH001",
    "target-lacks-eagle3",
    severity="error",
    evidence=[
        "vllm-project/vllm#22642",
        "vllm-project/vllm#32079",
        "vllm-project/vllm#45546",
        "vllm/model_executor/models/interfaces.py: SupportsEagle3",
    ],
)
def target_lacks_eagle3(
    target: Target, serving: Serving, engine: Engine, method: str, hardware: Hardware | None = None
) -> Iterator[Finding]:
    """The target's class does not hand out auxiliary hidden states, or a list in the config stage stops it."""
    if method not in AUX_METHODS:
        raise NotApplicable(f"{method} reads no auxiliary hidden states")
    eagle = engine.eagle
    repair = Repair(
        "manual",
        "take a release that serves it (`specfix engine` shows what each knows), or another method",
        ("engine_args",),
    )
    if eagle.config_stage is not None and method in eagle.config_stage_methods:
        model_type = known(target.model_type, f"model_type in {target.config.file}")
        if not any(part in model_type for part in eagle.config_stage):
            yield Finding(
                f"{engine} refuses {method} for a target of model_type {model_type!r}: its list of model types for it "
                f"is {', '.join(eagle.config_stage)}.",
                target.at("model_type"),
                "config",
                related=(serving.at("method"),),
                repair=repair,
            )
            return
    name = architecture_of(target, engine)
    if (
        hardware is not None
        and hardware.platform == "rocm"
        and engine.methods.architectures.get(name, "").startswith(OWN)
    ):
        raise MissingFact(f"the class that {engine} has for {name} on ROCm")
    supported = known(eagle.support.get(name), f"whether {name} of {engine} supports EAGLE3")
    if supported and name in eagle.language_by_config:
        name = language_class(target, engine)
        supported = known(eagle.support.get(name), f"whether {name} of {engine} supports EAGLE3")
    if not supported:
        yield Finding(
            f"{engine} has no EAGLE3 interface on {name}: {method} needs the target's auxiliary hidden states, and "
            "that class does not hand them out. The server stops after loading the weights.",
            target.at("architectures"),
            "load",
            related=(serving.at("method"),),
            repair=repair,
        )
