"""WGT016: num_hidden_layers is not what the checkpoint has."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.deployment.model import MTP_KEYS
from specfix.engines import Engine
from specfix.facts.decoder import BuiltModel
from specfix.facts.loading import unfilled

KEY = "num_hidden_layers"


@rule(
    "WGT016",
    "layers-against-weights",
    severity="error",
    evidence=["vllm/model_executor/model_loader/default_loader.py", "vllm/model_executor/models/utils.py"],
)
def layers_against_weights(
    serving: Serving, engine: Engine, built_target: BuiltModel, built_draft_model: BuiltModel | None = None
) -> Iterator[Finding]:
    """The target, or a draft model, has more layers by its config than by its weights, or fewer."""
    for one in filter(None, (built_target, built_draft_model)):
        stated, held = one.model.integer(KEY), len(one.layers)
        if one.layers != tuple(range(held)) or stated == held:
            continue
        if stated < held and (not one.built.strict or any(one.model.config.find(key) for key in MTP_KEYS)):
            continue  # what is left over may be for drafting, and be passed over
        phase, end = unfilled(serving, engine, "and the others keep what was in memory")
        if stated < held:
            phase, end = "load", f"{engine} knows no name of a layer {stated}, and that ends the start"
        yield Finding(
            f"The {one.side}'s config states {stated} layers ({KEY}), and its weights hold {held}: {end}.",
            one.model.at(KEY),
            phase,
            repair=Repair("manual", f"take the config.json that was published with these weights: {KEY} {held}", ()),
        )
