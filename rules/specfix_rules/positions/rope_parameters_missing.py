"""POS007: a RoPE block without what its type needs."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment
from specfix.engines import Engine
from specfix.errors import known
from specfix.facts.positions import rotary_models

# Some releases of Transformers fill this in of the config's lengths, others do not.
MAY_BE_FILLED = frozenset({"original_max_position_embeddings"})


@rule(
    "POS007",
    "rope-parameters-missing",
    severity="error",
    evidence=["vllm/model_executor/layers/rotary_embedding: get_rope"],
)
def rope_parameters_missing(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """A RoPE block leaves out a key that its type cannot do without."""
    needed = known(engine.rope.needed, f"what {engine} needs for each rope_type")
    for surface, model in rotary_models(deployment, engine):
        side = surface.removesuffix("_config")
        for rope in model.ropes:
            if not rope.pointer:
                continue  # the config class's own block
            missing = [
                key.replace("|", " or ")
                for key in needed.get(rope.rope_type, ())
                if key not in MAY_BE_FILLED and not any(rope.parameters.get(one) is not None for one in key.split("|"))
            ]
            if missing:
                yield Finding(
                    f"The {side}'s RoPE block has the type {rope.rope_type} and no {' and no '.join(missing)}. "
                    f"{engine} cannot build the embedding without, and does not start.",
                    model.config.at(rope.pointer),
                    "load",
                    repair=Repair(
                        "manual",
                        f"put the values in with which the {side} was trained, or the type that it was trained with",
                        (surface,),
                    ),
                )
