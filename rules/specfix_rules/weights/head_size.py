"""WGT006: the size of attention's heads by the config is not that of the weights."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Draft
from specfix.errors import MissingFact
from specfix.facts.weights import DraftHead, attention

PARTS = (("q_proj", "query"), ("k_proj", "key"))


@rule(
    "WGT006",
    "head-size-against-weights",
    severity="error",
    evidence=["vllm-project/speculators#134", "vllm/model_executor/layers/linear.py"],
)
def head_size(draft: Draft, draft_head: DraftHead) -> Iterator[Finding]:
    """num_attention_heads or num_key_value_heads times head_dim is not what q_proj or k_proj has."""
    heads, kv_heads, size = attention(draft_head)
    first = next(iter(draft_head.layer_indices()), 0)
    rows = {}
    for name, _ in PARTS:
        tensor = draft_head.plain(f"layers.{first}.self_attn.{name}.weight")
        if tensor is None:
            raise MissingFact(f"an unpacked {name}.weight in the safetensors header of {draft.reference}")
        rows[name] = tensor.shape[0]
    built = {"q_proj": heads * size, "k_proj": kv_heads * size}
    wrong = [(name, word) for name, word in PARTS if rows[name] != built[name]]
    if not wrong:
        return
    name, word = wrong[0]
    count = heads if name == "q_proj" else kv_heads
    # a larger one is cut to what is built, a smaller one cannot be
    larger = all(rows[each] >= built[each] for each in built)
    end = "only the first of them are loaded, and the draft's attention is wrong" if larger else "they do not load"
    stated = draft_head.number("head_dim") is not None
    whose = f"head_dim {size}" if stated else f"{size}, hidden_size / num_attention_heads"
    yield Finding(
        f"{name}.weight has {rows[name]} rows, and the config gives {count} {word} heads of {whose}: {built[name]}. "
        f"{end.capitalize()}.",
        draft.at("head_dim"),
        "silent" if larger else "load",
        related=(draft.at("num_attention_heads" if name == "q_proj" else "num_key_value_heads"),),
        repair=repair(draft, rows["q_proj"], heads, rows["k_proj"], kv_heads),
    )


def repair(draft: Draft, queries: int, heads: int, keys: int, kv_heads: int) -> Repair:
    """The head size that both weights agree on, where they do."""
    size = queries // heads
    if size and size * heads == queries and size * kv_heads == keys:
        change: Change = ("draft_config", draft.at("head_dim").pointer, size)
        return Repair("safe", f"head_dim {size}, as q_proj and k_proj have it", ("draft_config",), (change,))
    return Repair("manual", "take the config.json that was published with these weights", ("draft_config",))
