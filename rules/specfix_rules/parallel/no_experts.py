"""PAR011: expert parallelism of a model without experts."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.runner import traits

FLAG = "enable_expert_parallel"


@rule("PAR011", "no-experts", severity="error", evidence=["vllm/config/model.py: verify_with_parallel_config"])
def no_experts(target: Target, serving: Serving, engine: Engine) -> Iterator[Finding]:
    """--enable-expert-parallel, and the target is dense."""
    if serving.flag(FLAG) is not True:
        raise NotApplicable("no expert parallelism")
    if not known(engine.parallel.experts_needed, f"whether {engine} asks for experts"):
        raise NotApplicable(f"{engine} takes it for a dense model too")
    if known(traits(target, engine).get("is_moe"), f"whether {target.config.file} has experts"):
        return
    yield Finding(
        f"--enable-expert-parallel is on, and the target has no experts: {engine} refuses to start.",
        serving.at(FLAG),
        "config",
        repair=Repair(
            "safe",
            "leave --enable-expert-parallel out: there is nothing that it could spread",
            ("engine_args",),
            (("engine_args", FLAG, None),),
        ),
    )
