"""AUX005: the mask token of a parallel drafter is not where it is looked for, or is no token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.weights import DraftHead, config_of

PARALLEL = frozenset({"dflash", "dspark"})
ASKED = frozenset({"eagle", "eagle3", "draft_model"})  # where the speculative config says so
SAID = "parallel_drafting"
ROWS = 64  # a table of embeddings is filled up to a multiple of it, with nothing


@rule("AUX005", "mask-token", severity="error", evidence=["vllm/v1/spec_decode/llm_base_proposer.py"])
def mask_token(
    target: Target,
    draft: Draft,
    serving: Serving,
    engine: Engine,
    method: str,
    runners: tuple[str, ...],
    draft_head: DraftHead | None = None,
) -> Iterator[Finding]:
    """The token that stands for what is to be drafted is missing from the config, or past the embeddings."""
    asked = method in ASKED and serving.speculative.get(SAID) is True
    if method not in PARALLEL and not asked:
        raise NotApplicable(f"{method} drafts one token after the other")
    if asked and SAID not in known(engine.speculative.keys, f"the keys of the speculative config of {engine}"):
        raise NotApplicable(f"{engine} has no {SAID}")
    head = draft_head if asked else known(draft_head, f"what {engine} builds of the draft")
    values = config_of(draft, engine) if head is None else head.values
    found = {sought(runner, values, engine, method) for runner in runners}
    if len(found) > 1 or (asked and runners != ("V1",)):  # the V2 runner has no such drafter for these methods
        raise MissingFact(f"which model runner {engine} chooses")
    ((place, token),) = found
    if place is None:
        repair = Repair("manual", "write the mask token that the draft was trained with", ("draft_config",))
        if asked:
            repair = Repair("manual", f"leave {SAID} out: the draft was not trained for it", ("speculative_config",))
        yield Finding(
            f"The draft's config names no mask token where {engine} looks for it (dflash_config.mask_token_id first), "
            "and without one it does not start.",
            serving.at(f"speculative.{SAID}") if asked else draft.at("dflash_config"),
            "load",
            repair=repair,
        )
        return
    rows = target.integer("vocab_size")
    if draft_head is not None and holds_embeddings(draft_head):
        rows = draft_head.vocabulary
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


def sought(runner: str, values: Mapping[str, Any], engine: Engine, method: str) -> tuple[str | None, int | None]:
    """(place, token) of the first key that the runner reads and the config has."""
    what = f"where the {runner} runner of {engine} looks for a {method} draft's mask token"
    for place in known(engine.eagle.mask_places.get(runner), what):
        block, _, key = place.rpartition(".")
        level: Any = values.get(block) if block else values
        if isinstance(level, Mapping) and level.get(key) is not None:
            value = level[key]
            if isinstance(value, bool) or not isinstance(value, int):
                raise MissingFact(f"a token id as {place}")
            return place, value
    return None, None


def holds_embeddings(head: DraftHead) -> bool:
    """Whether the draft brings embeddings of its own; as far as is known it does not."""
    return head.draft.tensors is not None and head.named("embed_tokens") is not None
