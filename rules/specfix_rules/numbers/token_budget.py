"""NUM003: no token is left for the scheduler once the draft's slots are taken."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.budget import BATCH, SEQS, TOKENS, Batch, whole


@rule(
    "NUM003",
    "token-budget",
    severity="error",
    evidence=["vllm-project/vllm#50708", "vllm/config/vllm.py: _set_max_num_scheduled_tokens"],
)
def token_budget(
    serving: Serving, method: str, engine: Engine, draft_tokens: int, batches: tuple[Batch, ...]
) -> Iterator[Finding]:
    """The draft's slots take all tokens that a batch may have."""
    held = known(engine.numbers.slots_held, f"how {engine} makes room for draft tokens")
    if held == "none":
        raise NotApplicable("the release keeps no slots for drafting")
    slots = slots_of(serving, method, draft_tokens, engine)
    asked = whole(serving, "max_num_scheduled_tokens")
    least = 1 if asked is None or held == "once" else asked
    short = [batch for batch in batches if batch.tokens < least + slots * (batch.seqs if held == "each" else 1)]
    if not short:
        return
    if len(short) < len(batches):
        raise MissingFact(f"{BATCH} and {SEQS}, whose defaults hang on the memory of a device")
    batch = short[0]
    taken = slots * (batch.seqs if held == "each" else 1)
    each = f"for each of max_num_seqs={batch.seqs} requests" if held == "each" else "for a request"
    source = "" if serving.flag(BATCH) is not None else ", its default here"
    yield Finding(
        f"{engine} keeps {slots} slots {each} free for drafting {draft_tokens} tokens, {taken} in all, and "
        f"max_num_batched_tokens is {batch.tokens}{source}: {batch.tokens - taken} are left to schedule, and it "
        "refuses "
        "to start.",
        serving.at(BATCH),
        "config",
        related=(serving.at(f"speculative.{TOKENS}"), serving.at(SEQS)),
        repair=repair(batch, taken, least),
    )


def slots_of(serving: Serving, method: str, draft_tokens: int, engine: Engine) -> int:
    """Slots that each request takes of a batch beside its own tokens."""
    table = known(engine.numbers.slots, f"how many slots {engine} keeps for drafting")
    parallel = serving.speculative.get("parallel_drafting") is True
    words = table.get(f"{method}+parallel", "0") if parallel and method not in table else table.get(method, "0")
    if parallel:
        words = table.get(f"{method}+parallel", words)
    return {"0": 0, "1": 1, "k": draft_tokens, "k-1": draft_tokens - 1}[words]


def repair(batch: Batch, taken: int, least: int) -> Repair:
    """Room for the slots and for a batch as large as before; nothing that starts today is touched."""
    wanted = taken + max(least, batch.tokens)
    return Repair(
        "unsafe",
        f"--max-num-batched-tokens {wanted}, which takes more memory; or fewer --max-num-seqs",
        ("engine_args",),
        (("engine_args", "max-num-batched-tokens", wanted),),
    )
