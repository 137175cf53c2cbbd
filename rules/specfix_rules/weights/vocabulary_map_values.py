"""WGT005: the numbers in ``d2t`` are no offsets into the target's vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.weights import DraftHead

FEW = 64  # tokens up to which a map whose numbers all differ may be an accident


@rule(
    "WGT005",
    "vocabulary-map-values",
    severity="error",
    evidence=["verl-project/verl-SpeCo#67", "vllm/model_executor/models/llama_eagle3.py"],
    requires=["WGT004"],
)
def vocabulary_map_values(target: Target, draft: Draft, draft_head: DraftHead) -> Iterator[Finding]:
    """Token i of the draft is token i + d2t[i] of the target, and that leads astray."""
    found = draft_head.named("d2t")
    if found is None:
        raise NotApplicable("the draft maps no tokens")
    name, tensor = found
    if tensor.dtype not in {"I64", "I32"} or len(tensor.shape) != 1:
        raise MissingFact(f"{name} as a list of whole numbers in {draft.reference}")
    offsets = draft.integers(tensor)
    tokens = [i + offset for i, offset in enumerate(offsets)]
    size = min(draft_head.vocabulary, target.integer("vocab_size"))
    wrong = fault(tokens, offsets, size) or unlisted(draft, draft_head, tokens)
    if wrong is None:
        return
    ids = are_ids(offsets, size)
    outside = not all(0 <= token < size for token in tokens)
    reading = " Its numbers look like token ids where offsets (id - i) are expected." if ids else ""
    yield Finding(
        f"{name} leads astray: {wrong}.{reading}",
        draft.at("draft_vocab_size"),
        "runtime" if outside else "silent",
        "certain" if outside else "likely",
        related=(target.at("vocab_size"),),
        repair=Repair(
            "manual",
            f"write {name}[i] - i in its place" if ids else "take the draft's own d2t: it cannot be made anew",
            (),
        ),
    )


def fault(tokens: Sequence[int], offsets: Sequence[int], size: int) -> str | None:
    """What is wrong with the map by itself."""
    for i, token in enumerate(tokens):
        if not 0 <= token < size:
            return f"draft token {i} becomes {i} + {offsets[i]} = {token}, and the target has tokens 0 to {size - 1}"
    if 2 * len(set(tokens)) < len(tokens):  # a few that repeat are rows of padding, and cost no more than themselves
        return f"its {len(tokens)} draft tokens become no more than {len(set(tokens))} different ones"
    if are_ids(offsets, size):
        return f"its {len(offsets)} numbers all rise, so that no two of the draft's tokens are neighbours in the target"
    return None


def are_ids(offsets: Sequence[int], size: int) -> bool:
    """Whether the numbers are rather ids: offsets never fall, but they stay the same for each run of neighbours."""
    rising = all(one < other for one, other in pairwise(offsets))
    return len(offsets) > FEW and rising and offsets[0] >= 0 and offsets[-1] < size


def unlisted(draft: Draft, head: DraftHead, tokens: Sequence[int]) -> str | None:
    """Where ``t2d`` marks other tokens of the target as the draft's; None where it marks these, or is not at hand."""
    found = head.named("t2d")
    if found is None or found[1].dtype not in {"BOOL", "U8"} or len(found[1].shape) != 1:
        return None
    try:
        marks = draft.integers(found[1])
    except MissingFact:
        return None
    if any(marks) and max(tokens, default=0) < len(marks):
        for i, token in enumerate(tokens):
            if not marks[token]:
                return f"draft token {i} becomes {token}, which {found[0]} does not mark as one of the draft's"
    return None
