"""MTH006: multi-token prediction asked of a model that has none for this release."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.facts.method import MTP, Settled


@rule(
    "MTH006",
    "no-built-in-draft",
    severity="error",
    evidence=["vllm/config/speculative.py: hf_config_override, SpeculativeConfig.__post_init__"],
    requires=["MTH004", "MTH002", "MTH003"],
)
def no_built_in_draft(
    target: Target,
    draft: Draft,
    serving: Serving,
    method: str,
    settled_method: Settled,
    draft_classes: DraftClasses,
    engine: Engine,
) -> Iterator[Finding]:
    """The release makes no MTP draft of this model, or the model states no MTP layers."""
    if method != MTP or settled_method.word is not None:
        raise NotApplicable("no MTP draft is asked for, or the path leads to another")
    side = "target" if draft.is_part_of(target) else "draft"
    types = known(engine.mtp.model_types, f"the MTP drafts of {engine}")
    other = Repair("manual", "take another method, or a release that serves this model's MTP layers", ("engine_args",))
    if draft_classes.model_type not in types:
        yield Finding(
            f"{engine} makes no MTP draft of the {side}: its model_type {show(draft_classes.stated_type)} is none for "
            f"which it has MTP layers, and it does not start with method {serving.method}.",
            draft.at("model_type"),
            "config",
            related=(serving.at("speculative.method"),),
            repair=other,
        )
    elif draft_classes.n_predict == 0:
        yield Finding(
            f"The {side} states 0 MTP layers, of which {engine} cannot draft: it divides num_speculative_tokens by "
            "them, and does not start.",
            draft.at(count_key(draft)),
            "config",
            related=(serving.at("speculative.method"),),
            repair=Repair("manual", "take a checkpoint that has its MTP layers, or another method", ("engine_args",)),
        )


def count_key(draft: Draft) -> str:
    """The key that states the number of MTP layers."""
    keys = ("mtp_num_hidden_layers", "num_nextn_predict_layers", "num_mtp_modules", "num_mtp_layers")
    return next((key for key in keys if draft.config.stated(key)), "num_nextn_predict_layers")
