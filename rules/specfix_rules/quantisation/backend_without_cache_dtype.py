"""QNT011: an attention backend that is asked for and does not take the KV cache's dtype."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.engines.conditions import evaluate
from specfix.errors import MissingFact, NotApplicable, known

BACKENDS = {"attention_backend": "kv_cache_dtype", "speculative.attention_backend": "speculative.kv_cache_dtype"}


@rule(
    "QNT011",
    "backend-without-cache-dtype",
    severity="error",
    evidence=["vllm-project/vllm#32165", "vllm/v1/attention/backend.py: validate_configuration"],
)
def backend_without_cache_dtype(
    serving: Serving, engine: Engine, hardware: Hardware | None = None
) -> Iterator[Finding]:
    """The target's or the draft's attention backend does not take the KV cache's dtype."""
    for place, own in BACKENDS.items():
        name, cache = given(serving, place), given(serving, own) or given(serving, "kv_cache_dtype")
        if name is None or cache in (None, "auto"):
            continue
        if known(hardware, "the hardware that will serve").platform != "cuda":
            raise NotApplicable("only on CUDA is a backend that is asked for held against the cache's dtype")
        backend = engine.backends.backends.get(name.upper())
        # the cache of latent attention has dtypes of its own, to which others are turned
        if backend is None or backend.kv_cache_dtypes is None or backend.mla is not False:
            continue
        if cache in backend.kv_cache_dtypes or holds(engine, hardware, name.upper(), str(cache)):
            continue
        side = "draft" if "speculative" in place else "target"
        yield Finding(
            f"The {side}'s attention backend is {name}, which takes no KV cache of {cache} on this machine: {engine} "
            f"refuses it. It takes {', '.join(backend.kv_cache_dtypes)}.",
            serving.at(place),
            "load",
            related=(serving.at("kv_cache_dtype"),),
            repair=Repair("manual", f"leave the {side}'s attention backend to the release, or the cache at auto"),
        )


def given(serving: Serving, place: str) -> str | None:
    """What is asked for there, as text; None where nothing is."""
    block, _, key = place.rpartition(".")
    value = serving.speculative.get(key) if block else serving.flag(key)
    return value if isinstance(value, str) else None


def holds(engine: Engine, hardware: Hardware | None, name: str, cache: str) -> bool:
    """Whether the backend takes the cache on this machine, where that hangs on the machine."""
    condition = engine.backends.backends[name].conditions.get(f"kv_cache_dtypes.{cache}")
    if condition is None or hardware is None:
        return False
    values: dict[str, object] = {"platform": hardware.platform}
    if hardware.compute_capability is not None:
        values["capability"] = list(hardware.compute_capability)
        values["capability.major"], values["capability.minor"] = hardware.compute_capability
    needs: set[str] = set()
    found = evaluate(condition, values, needs)
    if found is None:
        raise MissingFact(f"whether {name} takes a KV cache of {cache}: it hangs on {', '.join(sorted(needs))}")
    return bool(found)
