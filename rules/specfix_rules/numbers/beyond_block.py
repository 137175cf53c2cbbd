"""NUM002: more draft tokens than the block that the draft was trained for."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.deployment.expected import is_count
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.budget import TOKENS

KEYS = ("dspark_block_size", "block_size")


@rule(
    "NUM002",
    "beyond-block",
    severity="warning",
    evidence=["vllm-project/vllm#41834", "vllm-project/vllm#50012"],
    requires=["NUM001"],
)
def beyond_block(draft: Draft, serving: Serving, method: str, draft_tokens: int) -> Iterator[Finding]:
    """A DSpark draft is asked for more tokens than its block has."""
    if method != "dspark":
        raise NotApplicable("only DSpark drafts state their block")
    found = draft.config.find(*KEYS)
    if found is None or not is_count(found[1]):
        raise MissingFact(f"{KEYS[0]} in {draft.config.file}")
    block = int(found[1])
    if draft_tokens <= block or block < 1:
        return
    yield Finding(
        f"num_speculative_tokens is {draft_tokens}, and the draft was trained for blocks of {block}: the positions "
        "past "
        "the block were never trained, and on some machines acceptance fell at every position.",
        serving.at(f"speculative.{TOKENS}"),
        "silent",
        "likely",
        related=(draft.config.at(found[0]),),
        repair=Repair(
            "unsafe",
            f"num_speculative_tokens {block}; measure the acceptance of both",
            ("speculative_config",),
            (("speculative_config", TOKENS, block),),
        ),
    )
