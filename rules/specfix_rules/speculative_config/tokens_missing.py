"""CFG004: no num_speculative_tokens, and nothing that it could be taken from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment, Draft
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.facts.speculative_config import TOKENS, Refusals


@rule(
    "CFG004",
    "tokens-missing",
    severity="error",
    evidence=["vllm-project/vllm#44566", "vllm/config/speculative.py: SpeculativeConfig.__post_init__"],
    requires=["CFG005", "MTH002", "MTH003", "MTH006", "MTH007", "MTH010"],
)
def tokens_missing(
    deployment: Deployment,
    refusals: Refusals,
    engine: Engine,
    draft: Draft | None = None,
    draft_classes: DraftClasses | None = None,
) -> Iterator[Finding]:
    """The speculative config does not say how many tokens to draft, and the release does not find it elsewhere."""
    serving = deployment.serving
    if serving.num_speculative_tokens is not None or not deployment.config_given:
        raise NotApplicable("num_speculative_tokens is given, or the command is still to be written")
    if not refusals.of_tokens:
        found = refusals.values
        known(found.get(TOKENS), f"how many tokens {engine} drafts where nobody says it")
        return
    count = None
    if draft is not None:
        count = draft_classes.n_predict if draft_classes and draft_classes.n_predict else trained_for(draft, engine)
    yield Finding(
        f"The speculative config has no {TOKENS}, and {engine} takes it from nowhere else for method "
        f"{serving.method}: it does not start.",
        serving.at(f"speculative.{TOKENS}"),
        "config",
        repair=Repair(
            "safe",
            f"say {TOKENS} {count}, for which the draft is made",
            ("speculative_config",),
            (("speculative_config", TOKENS, count),),
        )
        if count
        else Repair("manual", f"say {TOKENS}: how many tokens are drafted in a step", ("speculative_config",)),
    )


def trained_for(draft: Draft, engine: Engine) -> int | None:
    """The number that a draft in the speculators format states."""
    place: Any = draft.config.values
    for part in (engine.speculators.tokens or "").split(".") if draft.speculators else ():
        if isinstance(place, list) and part.isdigit():
            place = place[int(part)] if int(part) < len(place) else None
        else:
            place = place.get(part) if isinstance(place, Mapping) else None
    return place if isinstance(place, int) and not isinstance(place, bool) and place > 0 else None
