"""MTH020: layer_types that are not one for each layer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment, Model
from specfix.engines import Engine
from specfix.engines.drafts import Refused, Unknown, converted
from specfix.engines.transformers import layers_counted
from specfix.engines.transformers.lookup import BASE, minors
from specfix.errors import MissingFact, known
from specfix.facts.class_defaults import ClassDefaults
from specfix.facts.transformers_fields import Side, read_by_transformers

KEY, LAYERS = "layer_types", "num_hidden_layers"


@rule(
    "MTH020",
    "layer-types-miscounted",
    severity="error",
    evidence=["transformers/configuration_utils.py: validate_layer_type"],
)
def layer_types_miscounted(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """layer_types has more entries than there are layers, or fewer."""
    for side, model, cls, types, layers in stated(deployment, engine):
        if types is None or layers is None or len(types) == layers:
            continue
        needed = known(engine.requirements.transformers, f"which Transformers {engine} needs")
        refusing = {layers_counted(cls, f"=={minor}.*") for minor in minors(needed)}
        if refusing == {True, False}:
            raise MissingFact(f"the Transformers beside {engine}, some of which refuse {KEY} of another number")
        if True in refusing:
            yield Finding(
                f"The {side.removesuffix('_config')}'s {KEY} has {len(types)} entries, and {LAYERS} is {layers}: "
                f"the Transformers that {engine} needs refuses the config.",
                model.config.at(f"{model.config.levels[0][0]}/{KEY}"),
                "config",
                related=(model.at(LAYERS),),
                repair=Repair("manual", "write one entry for each layer that the weights hold", (side,)),
            )


def stated(deployment: Deployment, engine: Engine) -> Iterator[tuple[Side, Model, str, Any, Any]]:
    """Each model that states layer_types: its side, itself, the class that reads its config, and what that makes of the
    two keys."""
    for side, model in read_by_transformers(deployment, engine):
        if model.config.levels[0][1].get(KEY) is not None:  # else the class makes them itself
            made = ClassDefaults(model.config, engine)
            types, layers = made(KEY), made(LAYERS)  # some classes cut the list, or have another name for the number
            if types is not None and layers is not None:
                yield side, model, types[0], types[1], layers[1]
    draft = deployment.draft  # whose config is of a class of the release's own, which adds no check
    if draft is not None and draft.config.is_speculators:
        with suppress(Refused, Unknown):
            config = converted(engine.speculators, draft.config.values)
            yield "draft_config", draft, BASE, config.get(KEY), config.get(LAYERS)
