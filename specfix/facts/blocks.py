"""KV cache blocks: the manager's size and the sizes that the attention backend's kernels take."""

from __future__ import annotations

from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, known


def backend(serving: Serving, hardware: Hardware, engine: Engine) -> str:
    """Name of the attention backend: the one asked for, or the only one that a CPU has."""
    if serving.attention_backend is not None:
        return serving.attention_backend
    if hardware.platform == "cpu":
        return known(engine.blocks.cpu_backend, f"the CPU attention backend of {engine}")
    raise MissingFact("the attention backend (--attention-backend)")


def block_size(serving: Serving, hardware: Hardware, engine: Engine) -> int:
    """Tokens in a block of the KV cache manager: --block-size, else the platform's default."""
    if serving.block_size is not None:
        return serving.block_size
    return known(engine.blocks.default.get(hardware.platform), "the KV cache block size (--block-size)")
