"""NUM008: a batch that has not one token for each request."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.budget import BATCH, SEQS, whole


@rule("NUM008", "batch-below-requests", severity="error", evidence=["vllm/config/scheduler.py: SchedulerConfig"])
def batch_below_requests(serving: Serving, engine: Engine) -> Iterator[Finding]:
    """max_num_batched_tokens is below max_num_seqs."""
    tokens, requests = whole(serving, BATCH), whole(serving, SEQS)
    if tokens is None or requests is None:
        raise NotApplicable("the engine makes its default fit")
    if tokens >= requests or not known(engine.numbers.batch_below_requests, f"whether {engine} takes that"):
        return
    yield Finding(
        f"max_num_batched_tokens is {tokens} and max_num_seqs {requests}: a batch must have a token for each request, "
        f"and {engine} refuses to start.",
        serving.at(BATCH),
        "config",
        related=(serving.at(SEQS),),
        repair=Repair("manual", f"a --max-num-seqs of {tokens} at most, or larger batches", ("engine_args",)),
    )
