"""HWR013: a KV cache in fp8 on a CPU that has no instructions for it."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of

FLAG = "kv_cache_dtype"


@rule(
    "HWR013",
    "fp8-cache-on-cpu",
    severity="error",
    evidence=["vllm/v1/attention/backends/cpu_attn.py: _get_attn_isa"],
)
def fp8_cache_on_cpu(target: Target, serving: Serving, hardware: Hardware, engine: Engine) -> Iterator[Finding]:
    """--kv-cache-dtype is one of fp8, and the CPU has neither AVX-512 nor AMX."""
    needed = engine.cpu.fp8_cache_needs
    if hardware.platform != "cpu" or not (serving.kv_cache_dtype or "").startswith("fp8") or not needed:
        raise NotApplicable("no cache in fp8 on a CPU, or a release that asks for no instructions")
    flags = known(hardware.cpu_flags, "the CPU's flags (specfix hardware --save)")
    if not set(needed).isdisjoint(flags):
        return
    name = architecture_of(target, engine)
    if name not in engine.eagle.decoders:
        raise MissingFact(f"the attention of {name} on a CPU")  # latent attention has a backend of its own
    yield Finding(
        f"--kv-cache-dtype is {serving.kv_cache_dtype}, and {hardware.name} has no {' and no '.join(needed)} among its "
        f"CPU's flags: {engine} refuses to start.",
        serving.at(FLAG),
        "load",
        related=(hardware.at("cpu_flags"),),
        repair=Repair(
            "unsafe", "leave the cache in the model's dtype", ("engine_args",), (("engine_args", FLAG, None),)
        ),
    )
