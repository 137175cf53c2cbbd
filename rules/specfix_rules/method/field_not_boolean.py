"""MTH016: a yes or no in a config that is neither."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment, Model
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.facts.transformers_fields import Side, checks_types, read_by_transformers

# typed so in the classes of Transformers 5; a handful of them take null too
KEYS = ("tie_word_embeddings", "attention_bias", "mlp_bias")


@rule(
    "MTH016",
    "field-not-boolean",
    severity="error",
    evidence=["transformers/configuration_utils.py", "huggingface_hub/dataclasses.py: strict"],
)
def field_not_boolean(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """tie_word_embeddings, attention_bias or mlp_bias is neither true nor false."""
    for side, model in read_by_transformers(deployment, engine):
        for pointer, level in model.config.levels:
            for key in KEYS:
                if key in level and not isinstance(level[key], bool) and checks_types(engine):
                    yield finding(side, model, (f"{pointer}/{key}", level[key]), engine)


def finding(side: Side, model: Model, found: tuple[str, object], engine: Engine) -> Finding:
    pointer, value = found
    return Finding(
        f"The {side.removesuffix('_config')}'s {pointer.rpartition('/')[2]} is {show(value)}, and the Transformers "
        f"that {engine} needs takes true or false there: the config is refused.",
        model.config.at(pointer),
        "config",
        "certain" if value is not None else "likely",
        repair=Repair("manual", "write true or false, as the trainer meant it", (side,)),
    )
