"""KVC001: a block size that no kernel can work with."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Hardware, Serving, Target
from specfix.engines import Engine
from specfix.engines.facts.hardware import KernelSizes
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.attention import asked_backend, tried_backends
from specfix.facts.blocks import BACKEND, kernel_block, kernel_size, windowed


@rule(
    "KVC001",
    "no-common-block-size",
    severity="error",
    evidence=[
        "vllm-project/vllm#54180",
        "vllm-project/vllm#47882",
        "vllm/v1/worker: select_common_block_size",
        "vllm/platforms/cuda.py: get_valid_backends",
    ],
)
def no_common_block_size(
    target: Target,
    serving: Serving,
    engine: Engine,
    backend: str | None = None,
    fixed_kernels: dict[str, KernelSizes] | None = None,
    draft: Draft | None = None,
    hardware: Hardware | None = None,
) -> Iterator[Finding]:
    """The attention backend takes neither the KV cache block size nor a part of it."""
    fixed = fixed_kernels or {}
    if serving.block_size is None and not fixed:
        raise NotApplicable("the engine picks a block size that its backend takes")
    if serving.block_size is None and serving.attention_backend is None:
        raise NotApplicable("the engine picks a backend and a block size that go together")
    if backend is None and not fixed and hardware is not None and hardware.platform == "cuda":
        yield from whichever_is_chosen(target, serving, hardware, engine)
        return
    windows = any(windowed(model) for model in (target, draft) if model is not None)
    if windows and engine.blocks.windows_own is not False:
        raise MissingFact("the block size once layers with a sliding window have taken theirs")
    backend = known(backend, BACKEND)
    size = serving.block_size or max(size for stated in fixed.values() for size in stated.sizes or (1,))
    stated = known(engine.blocks.backends.get(backend), f"the block sizes of {backend} in {engine}")
    if kernel_block(backend, size, engine) is None:
        others = ""
    elif fixed and backend not in fixed and kernel_size(size, [stated, *fixed.values()]) is None:
        name, its = next(iter(fixed.items()))
        others = f", while the target's own layers have {name}, which takes {said(its)}"
    else:
        return
    given = f"--block-size is {size}" if serving.block_size else f"The target needs KV cache blocks of {size}"
    yield Finding(
        f"{given}, and {backend} of {engine} takes {said(stated)}{others}: there is no common block size, and the "
        "engine refuses to start.",
        serving.at("block_size" if serving.block_size else "attention_backend"),
        "load",
        related=(serving.at("attention_backend"),) if serving.attention_backend else (),
        repair=Repair(
            "manual",
            "another --attention-backend"
            if others
            else f"a --block-size that {backend} takes, or leave the option out",
            ("engine_args",),
        ),
    )


def whichever_is_chosen(target: Target, serving: Serving, hardware: Hardware, engine: Engine) -> Iterator[Finding]:
    """No backend that the release tries takes the size."""
    if asked_backend(serving, engine) is not None:
        raise MissingFact(BACKEND)
    tried = tried_backends(target, serving, hardware, engine)
    if any(may_take(name, serving.block_size or 0, engine) for name in tried):
        return
    sizes = "; ".join(f"{name} takes {said(engine.blocks.backends[name])}" for name in tried)
    yield Finding(
        f"--block-size is {serving.block_size}, which none of the attention backends takes that {engine} tries on this "
        f"GPU: {sizes}. The engine refuses to start (`No valid attention backend found`).",
        serving.at("block_size"),
        "load",
        repair=Repair("manual", "a --block-size that one of them takes, or leave the option out", ("engine_args",)),
    )


def may_take(backend: str, size: int, engine: Engine) -> bool:
    try:
        return kernel_block(backend, size, engine) is not None
    except MissingFact:
        return True


def said(stated: KernelSizes) -> str:
    """The sizes in words."""
    parts = [str(size) for size in stated.sizes or ()] + [f"multiples of {base}" for base in stated.multiples or ()]
    return ", ".join(parts)
