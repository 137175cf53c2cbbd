"""WGT009: the release builds what the checkpoint does not fill."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Draft
from specfix.engines import Engine
from specfix.facts.weights import FUSED, DraftHead, absent


@rule(
    "WGT009",
    "weights-missing",
    severity="error",
    evidence=["vllm/model_executor/models/llama_eagle3.py", "vllm-project/vllm#12831"],
    requires=["WGT007", "WGT008"],
)
def weights_missing(draft: Draft, engine: Engine, draft_head: DraftHead) -> Iterator[Finding]:
    """A part of the draft has no tensor in its weights, and keeps what was in memory."""
    missing = absent(draft_head)
    biases = dict(biases_missing(draft_head))
    missing += biases
    if not missing:
        return
    bare = [name for name in missing if not is_norm(name)] or missing
    shown = ", ".join(bare[:3]) + (f" and {len(bare) - 3} more" if len(bare) > 3 else "")
    norms = all(map(is_norm, missing))
    key = biases.get(bare[0], "architectures")
    keys = dict.fromkeys(biases.values())
    changes: list[Change] = [("draft_config", draft.at(each).pointer, False) for each in keys]
    none_held = not any(name.endswith("_proj.bias") for name in draft_head.tensors)
    end = (
        "its norms keep the weight 1 then, and less is accepted"
        if norms
        else "it drafts with what was in memory, and nothing is accepted"
    )
    yield Finding(
        f"{engine} builds the draft as {draft_head.architecture} with {shown}, of which its weights hold nothing. "
        f"That is not checked: {end}.",
        draft.at(key),
        "silent",
        "likely" if norms else "certain",
        repair=Repair("safe", f"{', '.join(keys)} false: the weights have none", ("draft_config",), tuple(changes))
        if len(missing) == len(biases) and none_held
        else Repair("manual", "take a complete checkpoint of the draft, with its own config.json", ("draft_config",)),
        severity="warning" if norms else None,
    )


def biases_missing(head: DraftHead) -> Iterator[tuple[str, str]]:
    """(bias, key of the config that asks for it) of the first layer's that the config asks for and no layer has."""
    for part, key in head.promised_biases():
        home, _, last = part.rpartition(".")
        names = tuple(f"{home}.{name}.bias" for name in (last, FUSED.get(last, last)))
        if not any(name.endswith(names) for name in head.tensors):
            yield from ((f"layers.{layer}.{part}.bias", key) for layer in head.layer_indices()[:1])


def is_norm(path: str) -> bool:
    """``norm``, ``layers.0.input_layernorm``, ``fc_norm.0``: one is built with weights of 1, others with none."""
    return any("norm" in word for word in path.split(".")[-2:])
