"""PAR003: a KV cache that is interleaved among ranks, and attention that cannot verify drafts on it."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.budget import size
from specfix.facts.parallel import context_parallel_size

RANKS = "decode_context_parallel_size"
CONNECTOR = "kv_transfer_config"
FLAGS = ("dcp_kv_cache_interleave_size", "cp_kv_cache_interleave_size")  # the older one counts where it is above 1


@rule(
    "PAR003",
    "context-interleave",
    severity="error",
    evidence=[
        "vllm-project/vllm#56722",
        "vllm-project/vllm#43053",
        "vllm/v1/worker/cp_utils.py: check_attention_cp_compatibility",
    ],
)
def context_interleave(serving: Serving, method: str, engine: Engine) -> Iterator[Finding]:
    """Context parallelism interleaves the KV cache in a way that speculation does not work with."""
    ranks = context_parallel_size(serving)
    if not known(engine.parallel.interleave_checked, f"what {engine} asks of attention under context parallelism"):
        raise NotApplicable("nothing is asked of the attention")
    flag = next((name for name in FLAGS if size(serving, name) > 1), None)
    if flag is not None:
        pieces = f"pieces of {size(serving, flag)} tokens"
    elif serving.flag(CONNECTOR) and size(serving, RANKS) > 1:
        flag, pieces = CONNECTOR, "whole blocks, for the KV connector"
        if not known(engine.parallel.connector_interleaves, f"what a KV connector makes of the cache in {engine}"):
            raise NotApplicable("the KV cache is interleaved token by token")
    else:
        raise NotApplicable("the KV cache is interleaved token by token")
    if engine.parallel.interleaving:
        raise MissingFact(f"whether the attention is one of {', '.join(engine.parallel.interleaving)}")
    yield Finding(
        f"The KV cache of a sequence is split among {ranks} ranks in {pieces}, and no attention of {engine} verifies "
        "drafts on pieces of more than one token: an assertion ends the start.",
        serving.at(flag),
        "load",
        related=(serving.at(RANKS),),
        repair=repair(flag),
    )


def repair(flag: str) -> Repair:
    """Pieces of one token, where the user chose them."""
    if flag == CONNECTOR:
        return Repair("manual", "--decode-context-parallel-size 1, or no speculation", ("engine_args",))
    name = flag.replace("_", "-")
    return Repair("unsafe", f"--{name} 1", ("engine_args",), (("engine_args", name, 1),))
