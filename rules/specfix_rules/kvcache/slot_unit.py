"""KVC002: draft slots counted in other blocks than the block table holds."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.engines import Engine
from specfix.errors import known
from specfix.facts.blocks import BACKEND, BLOCK_SIZE, kernel_block


@rule(
    "KVC002",
    "slot-unit",
    severity="error",
    evidence=["vllm-project/vllm#31540", "vllm/v1/spec_decode/eagle.py"],
    requires=["KVC001"],
)
def slot_unit(
    draft: Draft, serving: Serving, engine: Engine, backend: str | None = None, block_size: int | None = None
) -> Iterator[Finding]:
    """The proposer computes slots with the manager's block size over a table of kernel blocks."""
    proposer = known(engine.blocks.proposer, f"the block size that the proposer of {engine} computes slots with")
    if proposer == known(engine.blocks.table, f"the blocks that the block table of {engine} holds"):
        return
    backend, block_size = known(backend, BACKEND), known(block_size, BLOCK_SIZE)
    kernel = kernel_block(backend, block_size, engine)
    if kernel in (block_size, None):
        return
    yield Finding(
        f"KV cache blocks have {block_size} tokens and the kernels of {backend} work on {kernel}. {engine} fills the "
        f"block table with blocks of {kernel}, and its proposer computes the draft's slots with {block_size}: drafts "
        "read and write the wrong cache, and next to nothing is accepted.",
        serving.at("block_size"),
        "silent",
        related=(serving.at("attention_backend"),) if serving.attention_backend else (),
        repair=Repair(
            "safe",
            f"a shim computes the slots in the kernels' blocks; so does --block-size {kernel}",
            ("shim",),
            (("shim", "slot_block_size", {}),),
        ),
    )
