"""QNT011: an attention backend that is asked for and does not take the KV cache's dtype."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.attention import asked_backend, takes_cache, tried_backends

MACHINE = "the hardware that will serve"
PREFIX = "kv_cache_dtypes."
AUTO = "auto"  # in the dtype of the model
BACKENDS = {"attention_backend": "kv_cache_dtype", "speculative.attention_backend": "speculative.kv_cache_dtype"}


@rule(
    "QNT011",
    "backend-without-cache-dtype",
    severity="error",
    evidence=["vllm-project/vllm#32165", "vllm/v1/attention/backend.py: validate_configuration"],
    requires=["QNT005"],  # a dtype that the release does not have
)
def backend_without_cache_dtype(
    target: Target, serving: Serving, engine: Engine, hardware: Hardware | None = None
) -> Iterator[Finding]:
    """The target's or the draft's attention backend does not take the KV cache's dtype."""
    told = False
    for finding in of_asked(serving, engine, hardware):
        told = True
        yield finding
    cache = given(serving, "kv_cache_dtype")
    if not told and cache not in (None, AUTO) and asked_backend(serving, engine) is None:
        yield from whichever_is_chosen(target, serving, str(cache), known(hardware, MACHINE), engine)


def of_asked(serving: Serving, engine: Engine, hardware: Hardware | None) -> Iterator[Finding]:
    """Backends that are asked for by name."""
    for place, own in BACKENDS.items():
        name, cache = given(serving, place), given(serving, own) or given(serving, "kv_cache_dtype") or AUTO
        if name is None or (cache == AUTO and takes_auto(engine, name)):
            continue
        machine = known(hardware, MACHINE)
        if machine.platform != "cuda":
            raise NotApplicable("only on CUDA is a backend that is asked for held against the cache's dtype")
        backend = engine.backends.backends.get(name.upper())
        # the cache of latent attention has dtypes of its own, to which others are turned
        if backend is None or backend.kv_cache_dtypes is None or backend.mla is not False:
            continue
        if takes_cache(name.upper(), cache, machine, engine):
            continue
        side = "draft" if "speculative" in place else "target"
        of = "the model's own dtype" if cache == AUTO else cache
        yield Finding(
            f"The {side}'s attention backend is {name}, which takes no KV cache of {of} on this machine: {engine} "
            f"refuses it. It takes {', '.join(backend.kv_cache_dtypes)}.",
            serving.at(place),
            "load",
            related=() if cache == AUTO else (serving.at("kv_cache_dtype"),),
            repair=Repair(
                "manual",
                f"leave the {side}'s attention backend to the release"
                + (f", or name a --kv-cache-dtype that {name} takes" if cache == AUTO else ", or the cache at auto"),
            ),
        )


def whichever_is_chosen(
    target: Target, serving: Serving, cache: str, hardware: Hardware, engine: Engine
) -> Iterator[Finding]:
    """No backend that the release tries takes the cache."""
    if cache not in names(engine):
        raise MissingFact(f"whether {engine} has a KV cache of {cache}")
    tried = tried_backends(target, serving, hardware, engine)
    if any(may_take(name, cache, hardware, engine) for name in tried):
        return
    yield Finding(
        f"--kv-cache-dtype is {cache}, which none of the attention backends takes that {engine} tries for this target "
        f"on this GPU: {', '.join(tried)}. It ends with `No valid attention backend found`.",
        serving.at("kv_cache_dtype"),
        "load",
        repair=Repair("manual", "another --kv-cache-dtype, or leave the option out", ("engine_args",)),
    )


def names(engine: Engine) -> set[str]:
    """The dtypes that the release has, as far as is known: its flag's choices, and what any backend takes anywhere."""
    flag = (engine.serve.flags or {}).get("kv-cache-dtype")
    found = {str(each) for each in (flag.choices if flag else None) or ()}
    for backend in engine.backends.backends.values():
        found.update(backend.kv_cache_dtypes or ())
        found.update(each.removeprefix(PREFIX) for each in backend.conditions if each.startswith(PREFIX))
    return found


def may_take(name: str, cache: str, hardware: Hardware, engine: Engine) -> bool:
    try:
        return engine.backends.backends[name].kv_cache_dtypes is None or takes_cache(name, cache, hardware, engine)
    except MissingFact:
        return True


def takes_auto(engine: Engine, name: str) -> bool:
    """Nearly every one does: then there is nothing to look into."""
    backend = engine.backends.backends.get(name.upper())
    return backend is None or backend.kv_cache_dtypes is None or AUTO in backend.kv_cache_dtypes


def given(serving: Serving, place: str) -> str | None:
    """What is asked for there, as text; None where nothing is."""
    block, _, key = place.rpartition(".")
    value = serving.speculative.get(key) if block else serving.flag(key)
    return value if isinstance(value, str) else None
