"""MTH004: a config whose model_type nobody has a class for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Model, Target
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.engines.transformers import class_defaults
from specfix.errors import known


@rule(
    "MTH004",
    "model-type-unknown",
    severity="error",
    evidence=["vllm/transformers_utils/config.py: HFConfigParser.parse", "transformers: AutoConfig.from_pretrained"],
)
def model_type_unknown(target: Target, engine: Engine, method: str, draft: Draft | None = None) -> Iterator[Finding]:
    """Neither the release nor the Transformers that it asks for knows the model_type of the target, or of the draft."""
    yield from unknown("target", target, engine)
    # a part of the target is the target's own; the other two are read by their format
    if draft is not None and not (draft.is_part_of(target) or draft.speculators or method == "medusa"):
        yield from unknown("draft", draft, engine)


def unknown(side: str, model: Model, engine: Engine) -> Iterator[Finding]:
    """The finding, where a model's type is known to nobody and its config brings no class of its own."""
    stated = model.config.values.get("model_type")
    if "AutoConfig" in auto_map(model) or (side == "target" and stated is None):
        return
    stated = known(stated, f"model_type in {model.config.file}")
    if stated in known(engine.configs.types, f"the model types that {engine} has classes for"):
        return
    asked = known(engine.requirements.transformers, f"the Transformers that {engine} asks for")
    if class_defaults(stated, asked) is not None:
        return
    like = likely_type(model, engine) if isinstance(model, Draft) else None
    repair = (
        Repair(
            "unsafe",
            f"set the draft's model_type to {like}, whose config its class is built for; run it once to confirm",
            ("draft_config",),
            (("draft_config", "/model_type", like),),
        )
        if like
        else Repair("manual", f"set the {side}'s model_type to that of its class, or bring its code")
    )
    yield Finding(
        f"The {side}'s model_type is {show(stated)}. {engine} has no config class for it, and neither has any known "
        f"Transformers in {asked or 'any version'}: the start ends when the {side}'s config is read.",
        model.config.at("/model_type"),
        "config",
        "likely",
        repair=repair,
    )


def auto_map(model: Model) -> Mapping[str, object]:
    """``auto_map`` of the config, empty where there is none."""
    found = model.config.values.get("auto_map")
    return found if isinstance(found, Mapping) else {}


def likely_type(draft: Model, engine: Engine) -> str | None:
    """The model type that the release's class of the draft is for: its module bears the name (``qwen3_dflash``)."""
    for name in draft.architectures:
        home = engine.methods.architectures.get(name, "").partition(":")[0].rpartition(".")[2]
        parts = home.split("_")
        for count in range(len(parts) - 1, 0, -1):
            like = "_".join(parts[:count])
            if class_defaults(like, engine.requirements.transformers) is not None:
                return like
    return None
