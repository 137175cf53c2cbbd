"""POS012: a RoPE factor that the release takes for a list, since it is a whole number."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment
from specfix.engines import Engine
from specfix.errors import MissingFact, known
from specfix.facts.positions import hands_rope_on, rotary_models

FACTOR = "factor"


@rule(
    "POS012",
    "whole-factor",
    severity="error",
    evidence=["vllm/model_executor/layers/rotary_embedding/linear_scaling_rope.py: LinearScalingRotaryEmbedding"],
)
def whole_factor(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """A linear RoPE's factor is written as a whole number, where the release takes fractions only."""
    types = known(engine.rope.fractions_only, f"what {engine} takes for a RoPE factor")
    for surface, model in rotary_models(deployment, engine):
        for rope in model.ropes:
            factor = rope.parameters.get(FACTOR)
            if rope.rope_type not in types or type(factor) is not int or not rope.pointer:
                continue
            if not hands_rope_on(model, engine):
                raise MissingFact(f"what the class of {model.config.file} makes of its RoPE block in {engine}")
            place, side = model.config.at(f"{rope.pointer}/{FACTOR}"), surface.removesuffix("_config")
            yield Finding(
                f"The {side}'s {rope.rope_type} RoPE has a factor of {factor}, not {factor:.1f}. "
                f"{engine} takes what is not written as a fraction for a list and does not start.",
                place,
                "load",
                repair=Repair("safe", f"write {float(factor)}", (surface,), ((surface, place.pointer, float(factor)),)),
            )
