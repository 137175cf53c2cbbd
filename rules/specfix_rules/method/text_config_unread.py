"""MTH018: a text_config of which the config's class makes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Model, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.class_defaults import ClassDefaults

KEY = "text_config"
HEADS = "num_attention_heads"


@rule(
    "MTH018",
    "text-config-unread",
    severity="error",
    evidence=["vllm/transformers_utils/config.py: get_hf_text_config"],
    requires=["MTH004"],
)
def text_config_unread(target: Target, engine: Engine, draft: Draft | None = None) -> Iterator[Finding]:
    """A config of a plain text model holds a text_config, too."""
    models: list[Model] = [target]
    if draft is not None and not draft.is_part_of(target) and not draft.speculators:
        models.append(draft)
    doubled = [one for one in models if isinstance(one.config.values.get(KEY), dict) and HEADS in one.config.values]
    if not doubled:
        raise NotApplicable(f"no whole config holds a {KEY}")
    if not known(engine.configs.heads_within, f"what {engine} makes of a {KEY}"):
        return
    for model in doubled:
        if ClassDefaults(model.config, engine).holds(KEY):
            continue
        yield Finding(
            f"The config's class, that of model_type {model.config.values.get('model_type')}, knows no {KEY}, so that "
            f"it stays a plain object. {engine} takes it for the language model's config all the same, finds no "
            f"{HEADS} in it, and refuses to start.",
            model.config.at(f"/{KEY}"),
            "config",
            repair=Repair(
                "manual",
                f"take {KEY} out, or give the model_type of the whole model",
                ("target_config" if model is target else "draft_config",),
            ),
        )
