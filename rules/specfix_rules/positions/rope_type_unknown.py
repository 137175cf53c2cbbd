"""POS013: a type of RoPE that the release does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment, Model
from specfix.deployment.json_text import show
from specfix.deployment.rope import Rope
from specfix.engines import Engine
from specfix.errors import known
from specfix.facts.positions import hands_rope_on, rotary_models, stated_block


@rule(
    "POS013",
    "rope-type-unknown",
    severity="error",
    evidence=["vllm/model_executor/layers/rotary_embedding: get_rope"],
    requires=["POS014"],
)
def rope_type_unknown(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """A RoPE block has a type for which the release has no embedding."""
    for surface, model in rotary_models(deployment, engine):
        side = surface.removesuffix("_config")
        for rope in model.ropes:
            stated = stated_type(model, rope)
            if stated is ... or not hands_rope_on(model, engine) or model.number("kv_lora_rank"):
                continue  # DeepSeek's classes write a type of their own over whatever it is
            if model.config.value("dual_chunk_attention_config"):
                continue
            types = known(engine.rope.types, f"the types of RoPE that {engine} knows")
            if rope.rope_type in types and stated is not None:
                continue
            yield Finding(
                f"The {side}'s RoPE block has the type {show(stated)}, and {engine} knows {', '.join(types)}: it "
                "cannot build the embedding, and does not start.",
                model.config.at(rope.pointer),
                "load",
                repair=Repair(
                    "manual",
                    f"write the type with which the {side} was trained, or take a release that knows it",
                    (surface,),
                ),
            )


def stated_type(model: Model, rope: Rope) -> Any:
    """The type that the config's block states, which may be null; ``...`` where it states none, or one for each type of
    layer."""
    block = stated_block(model, rope)
    return ... if block is None else block.get("rope_type", block.get("type", ...))
