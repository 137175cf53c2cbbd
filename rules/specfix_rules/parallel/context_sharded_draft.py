"""PAR004: a draft with attention of its own under decode context parallelism."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.budget import size
from specfix.facts.parallel import kv_heads

RANKS = "decode_context_parallel_size"


@rule(
    "PAR004",
    "context-sharded-draft",
    severity="error",
    evidence=[
        "vllm-project/vllm#48392",
        "vllm-project/vllm#50391",
        "vllm/v1/attention/backends/flash_attn.py: _forward_with_dcp",
    ],
)
def context_sharded_draft(
    draft: Draft, serving: Serving, method: str, engine: Engine, runners: tuple[str, ...]
) -> Iterator[Finding]:
    """The draft's KV cache is split among ranks that do not hold all of its heads."""
    ranks = size(serving, RANKS)
    if ranks <= 1:
        raise NotApplicable("no decode context parallelism")
    if method not in ("dflash", "dspark"):
        raise NotApplicable("seen of parallel drafters alone")
    sharding = known(engine.parallel.shards_drafts, f"what {engine} makes of a draft under context parallelism")
    if not set(runners) & set(sharding):
        return
    heads = kv_heads(draft)
    copies = serving.tensor_parallel_size // heads if serving.tensor_parallel_size > heads else 1
    if copies >= ranks:
        return
    if not set(runners) <= set(sharding):
        raise MissingFact(f"which model runner {engine} chooses")
    yield Finding(
        f"{RANKS} is {ranks}, so that attention gathers the query heads of {ranks} ranks on each, and a rank holds "
        "only "
        f"its own of the draft's {heads} KV heads (tensor_parallel_size {serving.tensor_parallel_size}). {engine} asks "
        "that of the target's heads, not of the draft's: the drafts are garbage, and next to nothing is accepted.",
        serving.at(RANKS),
        "silent",
        "likely",
        related=(draft.at("num_key_value_heads"),),
        repair=Repair("manual", "--decode-context-parallel-size 1, or another method", ("engine_args",)),
    )
