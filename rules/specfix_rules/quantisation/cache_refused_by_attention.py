"""QNT014: a KV cache's dtype that the target's own attention refuses."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of
from specfix.facts.attention import asked_backend
from specfix.facts.quantisation import stated

FLAG = "kv_cache_dtype"
SCHEMES = ("kv_cache_scheme", "kv_cache_quant_algo")
AUTO = "auto"
FP8 = "fp8"


@rule(
    "QNT014",
    "cache-refused-by-attention",
    severity="error",
    evidence=["vllm/models/deepseek_v4/attention.py: _resolve_dsv4_kv_cache_dtype"],
)
def cache_refused_by_attention(
    target: Target, serving: Serving, engine: Engine, hardware: Hardware | None = None
) -> Iterator[Finding]:
    """The target's attention keeps its cache in a format of its own, of which --kv-cache-dtype is none."""
    name = architecture_of(target, engine)
    own = engine.quantisation.own_caches.get(name)
    if own is None:
        raise NotApplicable(f"the attention of {name} takes what its backend takes")
    asked = serving.kv_cache_dtype not in (None, AUTO)
    cache = serving.kv_cache_dtype if asked else AUTO
    if cache not in own.refuses:
        return
    if not asked and of_checkpoint(target, engine):
        raise MissingFact("which KV cache the checkpoint's own scheme asks for")
    if asked_backend(serving, engine) in own.plain:
        raise NotApplicable(f"with that attention backend {name} takes any")
    machine = known(hardware, "the hardware that will serve")
    if machine.platform != "cuda":
        raise MissingFact(f"the attention of {name} on {machine.platform}")
    said = "No --kv-cache-dtype is given" if serving.kv_cache_dtype is None else f"--kv-cache-dtype is {cache}"
    yield Finding(
        f"{said}, and the attention of {name}, which keeps its KV cache in a format of its own, refuses {cache}: "
        f"{engine} stops while it makes the layers.",
        serving.at(FLAG),
        "load",
        related=(target.at("architectures"),),
        repair=Repair(
            "unsafe" if asked else "safe",
            "keep the KV cache in fp8",
            ("engine_args",),
            (("engine_args", "kv-cache-dtype", FP8),),
        )
        if FP8 not in own.refuses
        else None,
    )


def of_checkpoint(target: Target, engine: Engine) -> bool:
    """Whether the quantization_config has a scheme for the cache, which some releases take for the flag's "auto"."""
    found = stated(target, engine)
    block = found[1] if found else {}
    inner = block.get("quantization")
    return any(each.get(key) for each in (block, inner) if isinstance(each, dict) for key in SCHEMES)
