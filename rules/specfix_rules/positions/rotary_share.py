"""POS010: a share of rotary dimensions that the release refuses."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment
from specfix.engines import Engine
from specfix.errors import MissingFact, known
from specfix.facts.positions import hands_rope_on, rotary_models

SHARE = "partial_rotary_factor"


@rule("POS010", "rotary-share", severity="error", evidence=["vllm/model_executor/layers/rotary_embedding: get_rope"])
def rotary_share(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """The part of each head that is rotated is not above 0 and at most 1."""
    if not known(engine.rope.share_bounded, f"whether {engine} bounds a {SHARE}"):
        return
    for surface, model in rotary_models(deployment, engine):
        for rope in model.ropes:
            share = rope.parameters.get(SHARE)
            if share is None or 0 < share <= 1 or rope.parameters.get("rope_dim"):
                continue
            if not hands_rope_on(model, engine):
                raise MissingFact(f"whether the class of {model.config.file} rotates anything in {engine}")
            beside = model.config.stated(SHARE, "rotary_pct", "rotary_emb_fraction")
            pointer = beside[0] if beside and beside[1] == share else f"{rope.pointer}/{SHARE}"
            yield Finding(
                f"The {surface.removesuffix('_config')} has {share:g} of each head rotated; {engine} takes a "
                f"{SHARE} above 0 and at most 1, and does not start.",
                model.config.at(pointer),
                "load",
                repair=Repair("manual", "put in what the model was trained with; 1 is all of a head", (surface,)),
            )
