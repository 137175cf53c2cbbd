"""AUX005: the mask token of a parallel drafter is not where it is looked for, or is no token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.weights import DraftHead

PARALLEL = frozenset({"dflash", "dspark"})
ROWS = 64  # a table of embeddings is filled up to a multiple of it, with nothing


@rule("AUX005", "mask-token", severity="error", evidence=["vllm/v1/spec_decode/llm_base_proposer.py"])
def mask_token(
    target: Target, draft: Draft, engine: Engine, method: str, draft_head: DraftHead, runners: tuple[str, ...]
) -> Iterator[Finding]:
    """The token that stands for what is to be drafted is missing from the config, or past the embeddings."""
    if method not in PARALLEL:
        raise NotApplicable(f"{method} drafts one token after the other")
    found = {sought(runner, draft_head, engine, method) for runner in runners}
    if len(found) > 1:
        raise MissingFact(f"which model runner {engine} chooses")
    ((place, token),) = found
    if place is None:
        yield Finding(
            f"The draft's config names no mask token where {engine} looks for it (dflash_config.mask_token_id first), "
            "and without one it does not start.",
            draft.at("dflash_config"),
            "load",
            repair=Repair("manual", "write the mask token that the draft was trained with", ("draft_config",)),
        )
        return
    rows = draft_head.vocabulary if holds_embeddings(draft_head) else target.integer("vocab_size")
    if token is not None and not 0 <= token < -(-rows // ROWS) * ROWS:
        yield Finding(
            f"The mask token is {token} ({place}), and the embeddings that it is looked up in have {rows} rows.",
            draft.at("dflash_config"),
            "runtime",
            related=(target.at("vocab_size"),),
            repair=Repair(
                "manual", "take the draft for this target, with the tokenizer's own mask token", ("draft_config",)
            ),
        )


def sought(runner: str, head: DraftHead, engine: Engine, method: str) -> tuple[str | None, int | None]:
    """(place, token) of the first key that the runner reads and the config has."""
    what = f"where the {runner} runner of {engine} looks for a {method} draft's mask token"
    for place in known(engine.eagle.mask_places.get(runner), what):
        block, _, key = place.rpartition(".")
        level: Any = head.values.get(block) if block else head.values
        if isinstance(level, Mapping) and level.get(key) is not None:
            value = level[key]
            if isinstance(value, bool) or not isinstance(value, int):
                raise MissingFact(f"a token id as {place}")
            return place, value
    return None, None


def holds_embeddings(head: DraftHead) -> bool:
    """Whether the draft brings embeddings of its own; as far as is known it does not."""
    return head.draft.tensors is not None and head.named("embed_tokens") is not None
