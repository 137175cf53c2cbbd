"""WGT003: the draft's own output head is thrown away."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.weights import DraftHead, output_head


@rule(
    "WGT003",
    "output-head-replaced",
    severity="warning",
    evidence=["vllm-project/vllm#28549", "vllm/v1/spec_decode/eagle.py"],
)
def output_head_replaced(
    target: Target, draft: Draft, engine: Engine, method: str, draft_head: DraftHead, runners: tuple[str, ...]
) -> Iterator[Finding]:
    """The draft was trained with an output head of its own, and the release puts the target's in its place."""
    if method != "eagle3":
        raise NotApplicable(f"a {method} head is trained with the target's output head")
    if not draft_head.named("lm_head"):
        return
    whose = {output_head(runner, target, draft_head, method, engine) for runner in runners}
    if len(whose) > 1:
        raise MissingFact(f"which model runner {engine} chooses")
    if whose == {"target's"}:
        yield Finding(
            f"The draft's weights hold an lm_head of {draft_head.draft_vocabulary} tokens, which EAGLE3 trains with "
            f"the head. It is as large as the target's, and {engine} therefore drafts with the target's instead.",
            draft.at("draft_vocab_size"),
            "silent",
            "likely",  # the two may be alike
            related=(target.at("vocab_size"),),
            repair=Repair("manual", "take a release that keeps an output head that the draft brings", ()),
        )
