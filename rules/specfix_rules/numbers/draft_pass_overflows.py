"""NUM004: the draft pass that is tried at start has more tokens than its buffers hold."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.budget import BATCH, SEQS, TOKENS, Batch


@rule(
    "NUM004",
    "draft-pass-overflows",
    severity="error",
    evidence=[
        "vllm-project/vllm#53970",
        "vllm-project/vllm#56448",
        "vllm/v1/worker/gpu/spec_decode/dflash/speculator.py: propose",
    ],
    requires=["NUM003"],
)
def draft_pass_overflows(
    serving: Serving,
    method: str,
    engine: Engine,
    runners: tuple[str, ...],
    draft_tokens: int,
    batches: tuple[Batch, ...],
) -> Iterator[Finding]:
    """A parallel drafter is tried with more tokens than max_num_batched_tokens."""
    rows = known(engine.numbers.uncapped_rows, f"how {engine} tries a parallel drafter").get(method)
    if rows is None:
        raise NotApplicable("the draft pass is held to the batch")
    if "V2" not in runners:
        raise NotApplicable("the V1 runner has buffers of its own for the draft pass")
    each = draft_tokens + (rows == "k+1")
    over = [batch for batch in batches if min(batch.seqs, batch.tokens) * each > batch.tokens]
    if not over:
        return
    if len(over) < len(batches):
        raise MissingFact(f"{BATCH} and {SEQS}, whose defaults hang on the memory of a device")
    if runners != ("V2",):
        raise MissingFact(f"which model runner {engine} chooses")
    batch = over[0]
    needed = batch.seqs * each
    source = "" if serving.flag(BATCH) is not None else ", its default here"
    yield Finding(
        f"While it starts, {engine} tries the draft on max_num_seqs={batch.seqs} requests of {each} tokens, {needed} "
        "in "
        f"all; its buffers hold max_num_batched_tokens, which is {batch.tokens}{source}. It reads past their end, "
        "and the "
        "engine dies.",
        serving.at(BATCH),
        "warmup",
        related=(serving.at(SEQS), serving.at(f"speculative.{TOKENS}")),
        repair=Repair(
            "unsafe",
            f"--max-num-batched-tokens {needed}, which takes more memory; or --max-num-seqs {batch.tokens // each}",
            ("engine_args",),
            (("engine_args", "max-num-batched-tokens", needed),),
        ),
    )
