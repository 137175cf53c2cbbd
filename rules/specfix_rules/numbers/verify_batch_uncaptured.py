"""NUM005: the batches that verify drafts are larger than the graphs that are captured."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, Severity, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import MissingFact
from specfix.facts.budget import SEQS, TOKENS, Batch
from specfix.facts.graphs import Captured


@rule(
    "NUM005",
    "verify-batch-uncaptured",
    severity="warning",
    evidence=["vllm-project/vllm#37865", "vllm-project/vllm#50488", "vllm/config/vllm.py: _set_cudagraph_sizes"],
)
def verify_batch_uncaptured(
    serving: Serving,
    engine: Engine,
    draft_tokens: int,
    batches: tuple[Batch, ...],
    captured: tuple[Captured, ...],
) -> Iterator[Finding]:
    """A full batch of drafts to verify is larger than any CUDA graph."""
    query = draft_tokens + 1
    short = [
        (batch, one)
        for batch, one in zip(batches, captured, strict=True)
        if largest_batch(batch, query) > one.rounded and worth_it(one, query, serving)
    ]
    if not short:
        return
    if len(short) < len(batches):
        raise MissingFact("max_num_seqs, whose default hangs on the memory of a device")
    batch, one = short[0]
    verify = largest_batch(batch, query)
    largest = min(one.largest, one.rounded) or one.largest
    reached = largest // query
    why = f"that {one.chosen} leaves" if one.chosen else "that the release captures by itself"
    severity: Severity = "note" if one.chosen is None and one.bounded else "warning"
    yield Finding(
        f"{verify // query} requests with {draft_tokens} drafted tokens each are a batch of {verify}, and the "
        f"largest CUDA graph {why} is for {largest}: with more than {reached} requests {engine} runs without graphs, "
        "which is slower.",
        serving.at(one.chosen or SEQS),
        "silent",
        "certain" if verify > one.largest else "likely",
        related=(serving.at(f"speculative.{TOKENS}"),),
        repair=repair(verify // query, query),
        severity=severity,
    )


def largest_batch(batch: Batch, query: int) -> int:
    """Tokens of as many requests as the limits let in."""
    return min(batch.seqs, batch.tokens // query) * query


def worth_it(one: Captured, query: int, serving: Serving) -> bool:
    """Whether anyone meant that many requests to run on graphs: max_num_seqs was given, or not even a request or two
    would."""
    return serving.max_num_seqs is not None or one.rounded < 2 * query


def repair(requests: int, query: int) -> Repair:
    """The list that covers each number of requests, in steps of powers of two."""
    counts = [2**power for power in range(requests.bit_length()) if 2**power < requests]
    sizes = " ".join(str(number * query) for number in [*counts, requests])
    return Repair(
        "manual",
        f"--cudagraph-capture-sizes {sizes}, each of which takes memory; or fewer --max-num-seqs",
        ("engine_args",),
    )
