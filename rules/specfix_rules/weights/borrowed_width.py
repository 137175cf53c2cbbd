"""WGT011: the draft borrows what is of another width."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import MissingFact
from specfix.facts.weights import DraftHead, embeddings


@rule(
    "WGT011",
    "borrowed-width",
    severity="error",
    evidence=["vllm-project/vllm#44631", "vllm-project/vllm#18906", "vllm/v1/spec_decode/llm_base_proposer.py"],
)
def borrowed_width(
    target: Target, draft: Draft, engine: Engine, method: str, draft_head: DraftHead, runners: tuple[str, ...]
) -> Iterator[Finding]:
    """The draft has no embeddings of its own, and its hidden size is not the target's."""
    own, other = draft_head.hidden, target.integer("hidden_size")
    if own == other or draft_head.named("embed_tokens"):
        return
    whose = {embeddings(runner, target, draft_head, method, engine) for runner in runners}
    if len(whose) > 1:
        raise MissingFact(f"which model runner {engine} chooses")
    borrowed = whose == {"target's"}
    end = (
        f"{engine} gives it the target's, which do not fit its layers"
        if borrowed
        else f"{engine} does not give it the target's: it drafts with what was in memory, and nothing is accepted"
    )
    yield Finding(
        f"The draft's hidden_size is {own}, the target's {other}, and its weights hold no embed_tokens: {end}.",
        draft.at("hidden_size"),
        "warmup" if borrowed else "silent",
        related=(target.at("hidden_size"),),
        repair=Repair("manual", "take the draft that was made for this target", ("draft_config",)),
    )
