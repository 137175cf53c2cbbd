"""WGT007: the checkpoint has another number of layers than the release builds."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Draft
from specfix.errors import MissingFact
from specfix.facts.weights import DraftHead


@rule(
    "WGT007",
    "layer-count-against-weights",
    severity="error",
    evidence=["vllm-project/vllm#18030", "vllm/model_executor/models/llama_eagle3.py"],
)
def layer_count(draft: Draft, draft_head: DraftHead) -> Iterator[Finding]:
    """num_hidden_layers is not the number of layers in the draft's weights."""
    indices, built = draft_head.layer_indices(), draft_head.layers
    if not indices or indices != list(range(len(indices))):
        raise MissingFact(f"layers numbered from 0 in the safetensors header of {draft.reference}")
    held = len(indices)
    if held == built:
        return
    one = draft_head.built.layers == "one"
    said = "the release builds one layer of such a head" if one else f"num_hidden_layers is {built}"
    if held > built:
        end = f"layers.{built} finds no place, and the weights do not load"
    else:
        end = f"layers {held} to {built - 1} keep what was in memory, and nothing that the draft says is accepted"
    summary = f"num_hidden_layers {held}, as the weights have it"
    change: Change = ("draft_config", draft.at("num_hidden_layers").pointer, held)
    yield Finding(
        f"The draft's weights have {held} layers, and {said}: {end}.",
        draft.at("num_hidden_layers"),
        "load" if held > built else "silent",
        repair=Repair("manual", "take a release that builds every layer", ())
        if one
        else Repair("safe", summary, ("draft_config",), (change,)),
    )
