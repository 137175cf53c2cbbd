"""MTH016: a yes or no in a config that is neither."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Surface
from specfix.deployment import Deployment, Model
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import known

# typed so in the classes of Transformers 5; a handful of them take null too
KEYS = ("tie_word_embeddings", "attention_bias", "mlp_bias")
LENIENT = ("4.56.0", "4.57.6", "4.999")  # Transformers checks the types of a config's fields from its fifth major on


@rule(
    "MTH016",
    "field-not-boolean",
    severity="error",
    evidence=["transformers/configuration_utils.py", "huggingface_hub/dataclasses.py: strict"],
)
def field_not_boolean(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """tie_word_embeddings, attention_bias or mlp_bias is neither true nor false."""
    target, draft = deployment.target, deployment.draft
    sides: list[tuple[str, Model]] = [("target", target)]
    if draft is not None and not draft.is_part_of(target):
        sides.append(("draft", draft))
    for side, model in sides:
        if model.config.is_speculators or model.config.values.get("auto_map") is not None:
            continue  # read by a class of its own
        if model.model_type in (engine.configs.types or ()):
            continue
        for pointer, level in model.config.levels():
            for key in KEYS:
                if key in level and not isinstance(level[key], bool) and strict(engine):
                    yield finding(side, model, (f"{pointer}/{key}", level[key]), engine)


def strict(engine: Engine) -> bool:
    """Whether every Transformers that the release admits checks the types of a config's fields."""
    from packaging.specifiers import SpecifierSet

    admitted = SpecifierSet(known(engine.requirements.transformers, f"which Transformers {engine} needs"))
    return not any(admitted.contains(version) for version in LENIENT)


def finding(side: str, model: Model, found: tuple[str, object], engine: Engine) -> Finding:
    pointer, value = found
    surface: Surface = "target_config" if side == "target" else "draft_config"
    return Finding(
        f"The {side}'s {pointer.rpartition('/')[2]} is {show(value)}, and the Transformers that {engine} needs takes "
        "true or false there: the config is refused.",
        model.config.at(pointer),
        "config",
        "certain" if value is not None else "likely",
        repair=Repair("manual", "write true or false, as the trainer meant it", (surface,)),
    )
