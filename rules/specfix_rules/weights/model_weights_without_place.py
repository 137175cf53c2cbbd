"""WGT018: a whole model's checkpoint holds tensors for which the release has no place."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.engines import Engine
from specfix.facts.decoder import BuiltModel


@rule(
    "WGT018",
    "model-weights-without-place",
    severity="error",
    evidence=["vllm/model_executor/models/utils.py: AutoWeightsLoader"],
    requires=["WGT016"],
)
def model_weights_without_place(
    engine: Engine, built_target: BuiltModel, built_draft_model: BuiltModel | None = None
) -> Iterator[Finding]:
    """A tensor of the target's, or of a draft model's, has a name that its class does not know."""
    for one in filter(None, (built_target, built_draft_model)):
        names = sorted(name for name in one.tensors if not one.has_place(name)) if one.built.strict else []
        if not names:
            continue
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        scales = all(name.endswith("_scale") for name in names)
        yield Finding(
            f"{engine} builds the {one.side} as {one.architecture}, which has no place for {shown}: a name that is not "
            f"known ends the start.{' Scales belong to quantised weights, and its config speaks of none.' * scales}",
            one.model.at("quantization_config" if scales else "architectures"),
            "load",
            repair=Repair("manual", "take the config.json that was published with these weights"),
        )
