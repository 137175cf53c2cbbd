"""MTH009: a draft's config that the release ends the start over."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft
from specfix.engines import Engine
from specfix.facts.architecture import DraftClasses


@rule(
    "MTH009",
    "draft-config-refused",
    severity="error",
    evidence=[
        "vllm-project/vllm#38300",
        "vllm/transformers_utils/configs/speculators/algos.py",
        "vllm/config/speculative.py: hf_config_override",
    ],
    requires=["MTH003", "MTH004"],
)
def draft_config_refused(draft: Draft, draft_classes: DraftClasses, engine: Engine) -> Iterator[Finding]:
    """The release cannot make a draft of this config: an algorithm, a layer type or a key that it lacks."""
    if draft_classes.refused is None:
        return
    algorithm = draft.config.values.get("speculators_model_type")
    if draft.speculators:
        known = ", ".join(sorted(engine.speculators.algorithms or ())) or "none"
        what = f"{engine} cannot read the draft's speculators config ({algorithm}): {draft_classes.refused}. "
        what += f"It knows the algorithms {known}. "
        place = draft.at("speculators_model_type")
    else:
        what = f"{engine} cannot make a draft of this config: {draft_classes.refused}. "
        place = draft.at("architectures")
    yield Finding(
        f"{what}The server does not start.",
        place,
        "config",
        repair=Repair(
            "manual", "take a release that reads it, or have the draft's config written anew", ("engine_args",)
        ),
    )
