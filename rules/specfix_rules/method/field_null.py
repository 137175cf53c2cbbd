"""MTH019: a null where a config's class takes none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment
from specfix.engines import Engine
from specfix.facts.class_defaults import ClassDefaults
from specfix.facts.transformers_fields import checks_types, read_by_transformers

# typed without null in the classes of Transformers 5 that have a value of their own for it
KEYS = (
    *("hidden_act", "hidden_size", "intermediate_size", "max_position_embeddings", "num_attention_heads"),
    *("num_hidden_layers", "rms_norm_eps", "vocab_size"),
)


@rule(
    "MTH019",
    "field-null",
    severity="error",
    evidence=["transformers/configuration_utils.py", "huggingface_hub/dataclasses.py: strict"],
)
def field_null(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """What no model of its class is without is null, which is not as good as left out."""
    for side, model in read_by_transformers(deployment, engine):
        values = model.config.values
        null = [key for key in KEYS if key in values and values[key] is None]
        for key in null if null and checks_types(engine) else ():
            absent = replace(model.config, values={name: value for name, value in values.items() if name != key})
            defaults = ClassDefaults(absent, engine)
            if defaults.holds(key) and defaults(key) is not None:
                yield Finding(
                    f"The {side.removesuffix('_config')}'s {key} is null, and the Transformers that {engine} needs "
                    "takes none there: the config is refused.",
                    model.config.at(f"/{key}"),
                    "config",
                    "likely",
                    repair=Repair("manual", "write the value, or leave the key out for the class's own", (side,)),
                )
