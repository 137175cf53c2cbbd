"""WGT002: the draft ends up with no output head, or with half of the target's."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.weights import DraftHead, output_head


@rule(
    "WGT002",
    "output-head-missing",
    severity="error",
    evidence=["vllm-project/vllm#46435", "vllm/v1/spec_decode/llm_base_proposer.py"],
)
def output_head_missing(
    target: Target, draft: Draft, engine: Engine, method: str, draft_head: DraftHead, runners: tuple[str, ...]
) -> Iterator[Finding]:
    """The checkpoint holds no lm_head, and the target's does not do in its place."""
    if "lm_head" not in draft_head.built.parts:
        raise NotApplicable(f"a {draft_head.architecture} always drafts with the target's output head")
    if draft_head.named("lm_head"):
        return
    said = {outcome(runner, target, engine, method, draft_head) for runner in runners}
    if len(said) > 1:
        raise MissingFact(f"which model runner {engine} chooses")
    (why,) = said
    if why is None:
        return
    yield Finding(
        f"The draft's weights hold no lm_head, and {why}.",
        draft.at("draft_vocab_size"),
        "load" if "lm_head" in draft_head.built.demands and "first" in why else "silent",
        related=(target.at("vocab_size"),),
        repair=Repair("manual", "take a checkpoint of the draft that holds its lm_head.weight", ("draft_config",)),
    )


def outcome(runner: str, target: Target, engine: Engine, method: str, head: DraftHead) -> str | None:
    """What comes of it, in words; None where the target's head does."""
    rows, whole = head.draft_vocabulary, target.integer("vocab_size")
    whose = output_head(runner, target, head, method, engine)
    if whose == "nothing":
        return (
            f"{engine} does not give it the target's ({rows} tokens against {whole}): it drafts from memory that "
            "nobody filled, and nothing is accepted"
        )
    if whose == "target's" and rows < min(whole, head.vocabulary):  # more than padded otherwise
        return (
            f"{engine} puts the target's in its place: of its {whole} rows the first {rows} are taken for the draft's "
            "own tokens, and hardly anything is accepted"
        )
    return None
