"""KVC001: a block size that no kernel can work with."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.blocks import BACKEND, kernel_block


@rule(
    "KVC001",
    "no-common-block-size",
    severity="error",
    evidence=["vllm-project/vllm#54180", "vllm-project/vllm#47882", "vllm/v1/worker: select_common_block_size"],
)
def no_common_block_size(serving: Serving, engine: Engine, backend: str | None = None) -> Iterator[Finding]:
    """The attention backend takes neither the KV cache block size nor a part of it."""
    if serving.block_size is None:
        raise NotApplicable("the engine picks a block size that its backend takes")
    backend = known(backend, BACKEND)
    if kernel_block(backend, serving.block_size, engine) is not None:
        return
    stated = engine.blocks.backends[backend]
    takes = [str(size) for size in stated.sizes or ()] + [f"multiples of {base}" for base in stated.multiples or ()]
    yield Finding(
        f"--block-size is {serving.block_size}, and {backend} of {engine} takes {', '.join(takes)}: there is no "
        "common block size, and the engine refuses to start.",
        serving.at("block_size"),
        "load",
        related=(serving.at("attention_backend"),) if serving.attention_backend else (),
        repair=Repair("manual", f"a --block-size that {backend} takes, or leave the option out", ("engine_args",)),
    )
