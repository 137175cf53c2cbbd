"""HWR014: what is asked for leaves no attention backend to choose from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of
from specfix.facts.attention import asked_backend, backend_values, candidates, is_mla, refusals, takes_cache
from specfix.facts.blocks import kernel_block

Refused = Iterator[tuple[str, str]]
"""Each option that a backend does not take, and that in words."""


@rule(
    "HWR014",
    "no-backend-fits",
    severity="error",
    evidence=["vllm/platforms/cuda.py: get_valid_backends", "vllm/v1/attention/backend.py: validate_configuration"],
)
def no_backend_fits(target: Target, serving: Serving, hardware: Hardware, engine: Engine) -> Iterator[Finding]:
    """No attention backend that the release tries on this GPU takes the block size, or the KV cache's dtype."""
    cache = serving.flag("kv_cache_dtype")
    if asked_backend(serving, engine) is not None or (serving.block_size is None and cache in (None, "auto")):
        raise NotApplicable("a backend is asked for, or nothing that it might refuse")
    if hardware.platform != "cuda":
        raise NotApplicable("only on CUDA is every backend held against what is asked for")
    name = architecture_of(target, engine)
    if name not in engine.eagle.decoders or is_mla(target):
        raise MissingFact(f"the attention of each layer of {name}")
    tried = known(candidates(hardware, engine, serving, mla=False) or None, f"the backends that {engine} tries")
    values = backend_values(hardware, target)
    found: dict[str, dict[str, str]] = {}
    for one in tried:
        own = refusals(one, engine, values, mla=False)
        found[one] = dict([*own, *of_block(one, serving, engine), *of_cache(one, str(cache), hardware, engine)])
        if not found[one]:
            return
    said = "; ".join(f"{one} {' and '.join(reasons.values())}" for one, reasons in found.items())
    at_fault = [option for option in ("block_size", "kv_cache_dtype") if any(option in one for one in found.values())]
    if not at_fault:
        raise NotApplicable("it is not what is asked for that they refuse")
    options = " and ".join(f"--{option.replace('_', '-')} {serving.flag(option)}" for option in at_fault)
    yield Finding(
        f"With {options} no attention backend is left of those that {engine} tries on this GPU: {said}. It ends with "
        "`No valid attention backend found`.",
        serving.at(at_fault[0]),
        "load",
        related=tuple(map(serving.at, at_fault[1:])),
        repair=Repair("manual", "another value, or leave the option out", ("engine_args",)),
    )


def of_block(name: str, serving: Serving, engine: Engine) -> Refused:
    with suppress(MissingFact):  # what is not known is taken
        if serving.block_size is not None and kernel_block(name, serving.block_size, engine) is None:
            yield "block_size", f"takes no blocks of {serving.block_size}"


def of_cache(name: str, cache: str, hardware: Hardware, engine: Engine) -> Refused:
    backend = engine.backends.backends.get(name)
    if cache in ("None", "auto") or backend is None or backend.kv_cache_dtypes is None:
        return
    with suppress(MissingFact):
        if not takes_cache(name, cache, hardware, engine):
            yield "kv_cache_dtype", f"takes no KV cache of {cache}"
