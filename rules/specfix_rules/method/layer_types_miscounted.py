"""MTH020: layer_types that are not one for each layer."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment
from specfix.engines import Engine
from specfix.engines.transformers import layers_counted
from specfix.errors import known
from specfix.facts.class_defaults import ClassDefaults
from specfix.facts.transformers_fields import read_by_transformers

KEY, LAYERS = "layer_types", "num_hidden_layers"


@rule(
    "MTH020",
    "layer-types-miscounted",
    severity="error",
    evidence=["transformers/configuration_utils.py: validate_layer_type"],
)
def layer_types_miscounted(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """layer_types has more entries than there are layers, or fewer."""
    for side, model in read_by_transformers(deployment, engine):
        pointer, level = model.config.levels[0]
        if level.get(KEY) is None:
            continue  # the class makes them itself
        made = ClassDefaults(model.config, engine)
        types, layers = made(KEY), made(LAYERS)  # some classes cut the list, or have another name for the number
        if types is None or layers is None or len(types[1]) == layers[1]:
            continue
        needed = known(engine.requirements.transformers, f"which Transformers {engine} needs")
        if layers_counted(types[0], needed):
            yield Finding(
                f"The {side.removesuffix('_config')}'s {KEY} has {len(types[1])} entries, and {LAYERS} is {layers[1]}: "
                f"the Transformers that {engine} needs refuses the config.",
                model.config.at(f"{pointer}/{KEY}"),
                "config",
                related=(model.at(LAYERS),),
                repair=Repair("manual", "write one entry for each layer that the weights hold", (side,)),
            )
