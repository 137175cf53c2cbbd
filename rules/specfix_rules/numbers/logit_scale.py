"""NUM009: a factor of the draft's logits that is no positive number."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts.weights import DraftHead


@rule("NUM009", "logit-scale", severity="error", evidence=["vllm/model_executor/layers/logits_processor.py: forward"])
def logit_scale(draft_head: DraftHead, engine: Engine) -> Iterator[Finding]:
    """The draft's logits are multiplied by nothing, by 0, or by what turns their order round."""
    key = draft_head.built.scaled_by
    if key is None or key not in draft_head.values:
        raise NotApplicable("the draft's logits are taken as they are")
    value, draft = draft_head.values[key], draft_head.draft
    number = isinstance(value, int | float)
    if number and value > 0:
        return
    what = (
        "gives the likeliest token the last place, so that no draft is accepted"
        if number
        else "is nothing to multiply with: the draft ends in a TypeError"
    )
    yield Finding(
        f"{key} is {show(value)}, by which {engine} multiplies the draft's logits: that {what}.",
        draft.config.at(f"/{key}") if value is None else draft.at(key),
        "silent" if number else "runtime",
        repair=Repair("manual", f"take {key} out, or put in what the draft was trained with", ("draft_config",)),
    )
