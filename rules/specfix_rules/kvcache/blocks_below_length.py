"""KVC013: fewer KV cache blocks than one sequence of the served length needs."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Hardware, Serving, Target
from specfix.deployment.expected import is_count
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of
from specfix.facts.blocks import BLOCK_SIZE, keeps_default, windowed
from specfix.facts.budget import size

OVERRIDE = "num_gpu_blocks_override"
OWN_SIZES = "kv_cache_dtype_skip_layers"  # such layers change the block size
TURBO = "turboquant"


@rule(
    "KVC013",
    "blocks-below-length",
    severity="error",
    evidence=["vllm/v1/core/kv_cache_utils.py: get_kv_cache_configs, _check_enough_kv_cache_memory"],
)
def blocks_below_length(
    target: Target,
    serving: Serving,
    hardware: Hardware,
    engine: Engine,
    served_length: int,
    block_size: int,
    draft: Draft | None = None,
    draft_length: int | None = None,
) -> Iterator[Finding]:
    """--num-gpu-blocks-override leaves too few blocks for one sequence."""
    blocks = serving.flag(OVERRIDE)
    if blocks is None:
        raise NotApplicable("the engine counts the blocks that there is memory for")
    if not known(engine.blocks.override_checked, f"whether {engine} checks that number"):
        raise NotApplicable("the release does not check that number")
    length = served_length if draft_length is None else min(served_length, draft_length)
    if length <= 0:
        raise NotApplicable("the engine fits the length to the blocks")
    if not is_count(blocks):
        raise MissingFact(f"a whole number as --{OVERRIDE.replace('_', '-')}")
    if size(serving, "decode_context_parallel_size") * size(serving, "prefill_context_parallel_size") > 1:
        raise NotApplicable("a sequence is split among ranks")
    name = architecture_of(target, engine)
    narrow = str(serving.kv_cache_dtype).startswith(TURBO)  # with which the engine itself sets those layers
    if name not in engine.eagle.decoders or serving.flag(OWN_SIZES) or narrow:
        raise MissingFact(f"the KV cache blocks of each layer of {name}")
    if any(windowed(model) for model in (target, draft) if model is not None):
        raise MissingFact("the KV cache blocks of layers with a sliding window")
    if serving.block_size is None and not keeps_default(target, serving, hardware, engine):
        raise MissingFact(BLOCK_SIZE)
    counted = known(engine.blocks.null_reserved, f"whether {engine} counts the block that it keeps for itself")
    needed = -(-length // block_size) + 1
    if blocks >= needed:
        return
    refused = blocks < needed - (not counted)
    yield Finding(
        f"--num-gpu-blocks-override is {blocks}, one of which the engine keeps for itself: with {block_size} tokens a "
        f"block the others hold {(blocks - 1) * block_size}, and one sequence of the served length, {length}, needs "
        f"{needed - 1}. "
        + (
            f"{engine} refuses to start."
            if refused
            else f"{engine} does not count that one, and starts: a request that grows so long waits for ever, and all "
            "others behind it."
        ),
        serving.at(OVERRIDE),
        "load" if refused else "runtime",
        related=(serving.at("max_model_len"),),
        repair=Repair("manual", f"at least {needed} blocks, or a shorter --max-model-len", ("engine_args",)),
    )
