"""HWR008: an attention backend that refuses the target."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts.attention import (
    VARIABLE,
    asked_backend,
    backend_values,
    is_mla,
    latent_off,
    place_of_asked,
    refusals,
)


@rule(
    "HWR008",
    "backend-refuses-target",
    severity="error",
    evidence=["vllm-project/vllm#45375", "vllm/v1/attention/backend.py: validate_configuration"],
)
def backend_refuses_target(
    target: Target, serving: Serving, hardware: Hardware, engine: Engine, served_dtype: str | None = None
) -> Iterator[Finding]:
    """The attention backend that is asked for does not take this target on this machine."""
    name = asked_backend(serving, engine)
    if name is None or hardware.platform == "cpu":
        raise NotApplicable("no backend is asked for, or the platform takes its own")
    latent = None if latent_off(serving) else is_mla(target)
    found = refusals(name, engine, backend_values(hardware, target, served_dtype), mla=latent)
    if not found:
        return
    yield Finding(
        f"{name} of {engine} {' and '.join(reason for _, reason in found)}: the server does not start.",
        place_of_asked(serving),
        "load",
        related=(hardware.at("compute_capability"),),
        repair=Repair(
            "unsafe",
            "leave the backend to the engine",
            ("engine_args",),
            (("engine_args", "attention_backend", None),) if serving.attention_backend else (("env", VARIABLE, None),),
        )
        if not serving.flag("attention_config")
        else Repair("manual", "leave the backend to the engine", ("engine_args",)),
    )
