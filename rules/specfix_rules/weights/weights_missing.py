"""WGT009: the release builds what the checkpoint does not fill."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Draft
from specfix.engines import Engine
from specfix.facts.weights import DraftHead, absent


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
    built = draft_head.built
    if built.qkv_bias == "attention_bias" and draft_head.flag("attention_bias"):
        layers = [f"layers.{layer}.self_attn" for layer in draft_head.layer_indices()[:1]]
        held = any(name.endswith(("q_proj.bias", "qkv_proj.bias")) for name in draft_head.tensors)
        missing += [] if held else [f"{layer}.q_proj.bias" for layer in layers]
    if not missing:
        return
    bare = [name for name in missing if not is_norm(name)] or missing
    shown = ", ".join(bare[:3]) + (f" and {len(bare) - 3} more" if len(bare) > 3 else "")
    norms = all(map(is_norm, missing))
    bias = bare[0].endswith(".bias")
    change: Change = ("draft_config", draft.at("attention_bias").pointer, False)
    end = (
        "its norms keep the weight 1 then, and less is accepted"
        if norms
        else "it drafts with what was in memory, and nothing is accepted"
    )
    yield Finding(
        f"{engine} builds the draft as {draft_head.architecture} with {shown}, of which its weights hold nothing. "
        f"That is not checked: {end}.",
        draft.at("attention_bias" if bias else "architectures"),
        "silent",
        "likely" if norms else "certain",
        repair=Repair("safe", "attention_bias false: the weights have none", ("draft_config",), (change,))
        if bias and len(missing) == 1
        else Repair("manual", "take a complete checkpoint of the draft, with its own config.json", ("draft_config",)),
        severity="warning" if norms else None,
    )


def is_norm(path: str) -> bool:
    """``norm``, ``layers.0.input_layernorm``, ``fc_norm.0``: one is built with weights of 1, others with none."""
    return any("norm" in word for word in path.split(".")[-2:])
