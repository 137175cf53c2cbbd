"""WGT019: a whole model's checkpoint is without its last norm."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.facts.decoder import BuiltModel
from specfix.facts.loading import unfilled

NORM = "model.norm.weight"


@rule(
    "WGT019",
    "model-norm-missing",
    severity="error",
    evidence=["vllm/model_executor/model_loader/default_loader.py"],
    requires=["WGT016"],
)
def model_norm_missing(
    serving: Serving, engine: Engine, built_target: BuiltModel, built_draft_model: BuiltModel | None = None
) -> Iterator[Finding]:
    """The target, or a draft model, has no norm after its last layer, and its class builds one."""
    phase, end = unfilled(serving, engine, "so the norm keeps the weight 1, and the output is wrong")
    for one in filter(None, (built_target, built_draft_model)):
        if "norm" in one.built.parts and NORM not in one.tensors:
            yield Finding(
                f"{engine} builds the {one.side} as {one.architecture} with a norm after the last layer, and its "
                f"weights hold no {NORM}: {end}.",
                one.model.at("architectures"),
                phase,
                repair=Repair("manual", "take the whole checkpoint: a file of it is missing, or cut", ()),
            )
