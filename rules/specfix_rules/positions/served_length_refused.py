"""POS006: more tokens are asked for than the release derives for the target."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Model, Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts.lengths import longest, may_pass

KEY = "max_position_embeddings"


@rule(
    "POS006",
    "served-length-refused",
    severity="error",
    evidence=["vllm/config/model.py: _get_and_verify_max_len"],
)
def served_length_refused(target: Target, serving: Serving, engine: Engine) -> Iterator[Finding]:
    """--max-model-len is larger than the length that the release derives from the target's config."""
    asked = serving.max_model_len
    if asked is None:
        raise NotApplicable("no length is asked for")
    limit = longest(target, engine)
    if limit is None or asked <= limit or may_pass(asked, target, serving, engine):
        return
    key = length_key(target, engine)
    variable = engine.lengths.longer_allowed_by
    scaled = ", times its RoPE block's factor" if int(limit) != target.number(key) else ""
    way = f", or set {variable}=1 if the model is known to reach further" if variable else ""
    yield Finding(
        f"--max-model-len is {asked}, and {engine} derives {int(limit)} for the target ({key} is {target.number(key)}"
        f"{target.config.source(key)}{scaled}): it refuses to start.",
        serving.at("max_model_len"),
        "config",
        related=(target.at(key),),
        # it starts, and requests that were meant to be served are refused
        repair=Repair(
            "unsafe",
            f"serve {int(limit)} tokens{way}",
            ("engine_args",),
            (("engine_args", "max-model-len", int(limit)),),
        ),
    )


def length_key(model: Model, engine: Engine) -> str:
    """The key whose length counts: the smallest, or the one that wins over all."""
    overriding = engine.lengths.overriding_key
    if overriding and model.number(overriding):
        return overriding
    lengths = {key: length for key in engine.lengths.keys or () if (length := model.number(key)) is not None}
    return min(lengths, key=lengths.__getitem__, default=KEY)
