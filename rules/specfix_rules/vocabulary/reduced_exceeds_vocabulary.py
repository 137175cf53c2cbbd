"""VOC004: the reduced vocabulary of a head is larger than the whole one."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft
from specfix.errors import NotApplicable

KEY, WHOLE = "draft_vocab_size", "vocab_size"
HEADS = frozenset({"eagle3", "dflash"})


@rule(
    "VOC004",
    "reduced-exceeds-vocabulary",
    severity="error",
    evidence=["vllm/model_executor/models/llama_eagle3.py: compute_logits"],
)
def reduced_exceeds_vocabulary(draft: Draft, method: str) -> Iterator[Finding]:
    """Each token of the reduced vocabulary is one of the whole one, so that it cannot have more."""
    if method not in HEADS:
        raise NotApplicable(f"{method} drafts have no reduced vocabulary")
    reduced = draft.number(KEY)
    if reduced is None:
        return
    whole = draft.integer(WHOLE)
    if reduced <= whole:
        return
    yield Finding(
        f"draft_vocab_size is {reduced}, and the vocabulary of which that is a part has {whole} tokens (vocab_size): "
        f"the head's {reduced} logits are put into {whole} places, and drafting dies of an index that is not there.",
        draft.at(KEY),
        "runtime",
        "likely",
        related=(draft.at(WHOLE),),
        repair=Repair(
            "manual",
            "state the rows of the head's lm_head.weight as draft_vocab_size, the target's vocab_size as vocab_size",
        ),
    )
