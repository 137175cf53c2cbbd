"""WGT007: the checkpoint has other layers than the release builds."""

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
    """num_hidden_layers is not the number of layers in the draft's weights, or these are not numbered from 0."""
    indices, built = draft_head.layer_indices(), draft_head.layers
    held = len(indices)
    counted = indices == list(range(held))
    beyond = [index for index in indices if index >= built]
    # where a class passes over names, it does so but for those of what it fuses
    if not held or not (counted or (beyond and not draft_head.built.passes_unknown)):
        raise MissingFact(f"layers numbered from 0 in the safetensors header of {draft.reference}")
    if held == built and not beyond:
        return
    one = draft_head.built.layers == "one"
    said = "the release builds one layer of such a head" if one else f"num_hidden_layers is {built}"
    if beyond:
        end = f"layers.{beyond[0]} finds no place, and the weights do not load"
    else:
        end = f"layers {held} to {built - 1} keep what was in memory, and nothing that the draft says is accepted"
    summary = f"num_hidden_layers {held}, as the weights have it"
    change: Change = ("draft_config", draft.at("num_hidden_layers").pointer, held)
    if not counted:
        repair = Repair("manual", "take a checkpoint of the draft whose layers are numbered from 0", ())
    elif one:
        repair = Repair("manual", "take a release that builds every layer", ())
    else:
        repair = Repair("safe", summary, ("draft_config",), (change,))
    yield Finding(
        f"The draft's weights have {f'{held} layers' if counted else numbered(indices)}, and {said}: {end}.",
        draft.at("num_hidden_layers"),
        "load" if beyond else "silent",
        repair=repair,
    )


def numbered(indices: list[int]) -> str:
    """``layers.0 and layers.7``; of many the first and the last."""
    ends = dict.fromkeys((indices[0], indices[-1]))
    joined = " and " if len(indices) < 3 else " to "
    return joined.join(f"layers.{index}" for index in ends)
