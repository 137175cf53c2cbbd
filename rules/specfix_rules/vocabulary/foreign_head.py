"""VOC003: a head that was made for another vocabulary than the target's."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.facts.weights import DraftHead

KEY = "vocab_size"
HEADS = frozenset({"eagle", "eagle3", "dflash", "dspark"})
# Rows that sizes differ by where padding, or a few tokens for images and chats, is all: 399 at most in models known
# (151665 tokens padded to 152064).
PADDING = 1024


@rule(
    "VOC003",
    "head-of-another-vocabulary",
    severity="error",
    evidence=["vllm/model_executor/models/llama_eagle3.py", "vllm/model_executor/layers/vocab_parallel_embedding.py"],
)
def foreign_head(target: Target, draft: Draft, method: str, draft_head: DraftHead | None = None) -> Iterator[Finding]:
    """The target's ids are the head's ids, and the two have not the same number of them."""
    if method not in HEADS or draft.is_part_of(target):
        return
    own, theirs = draft.integer(KEY), target.integer(KEY)
    if abs(own - theirs) <= PADDING or (draft_head and drafts_first(draft_head, theirs)):
        return
    if own < theirs:
        end = f"it drafts none of the ids from {own} on and has no place for them, and the rest mean other tokens to it"
    else:
        end = f"ids from {theirs} on, which it may draft, lie outside of the target's embedding"
    yield Finding(
        f"The head was made for a vocabulary of {own} tokens ({KEY}), and the target has {theirs}: {end}. The release "
        "does not compare the two; next to nothing is accepted, or the engine dies.",
        draft.at(KEY),
        "runtime",
        "likely",
        related=(target.at(KEY),),
        repair=Repair("manual", "take a head that was trained for this target"),
    )


def drafts_first(head: DraftHead, theirs: int) -> bool:
    """The head has an output for each of the target's ids, or fewer, and no map: token i is the target's i, in a class
    whose map is there in any case, and of zeros where the checkpoint has none."""
    unmapped = head.draft.tensors is not None and head.named("d2t") is None
    return unmapped and head.built.mapping == "always" and head.draft_vocabulary <= theirs < head.vocabulary
