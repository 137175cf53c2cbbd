"""WGT017: a size in the config of a whole model is not that of its weights."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.errors import MissingFact
from specfix.facts.decoder import BuiltModel
from specfix.record import record

LAYER = "model.layers.*"


@record(frozen=True)
class Size:
    """``held`` in the weights, ``built`` by the config; ``cut``: a larger one is cut without a word."""

    key: str
    tensor: str
    held: int | None
    built: int
    cut: bool


@rule(
    "WGT017",
    "sizes-of-model-against-weights",
    severity="error",
    evidence=[
        "vllm/model_executor/parameter.py",
        "vllm/model_executor/layers/linear.py",
        "vllm/model_executor/layers/vocab_parallel_embedding.py",
    ],
)
def built_sizes(built_target: BuiltModel, built_draft_model: BuiltModel | None = None) -> Iterator[Finding]:
    """hidden_size, intermediate_size, vocab_size, or heads by head_dim, of the target or of a draft model."""
    for one in filter(None, (built_target, built_draft_model)):
        found = list(sizes(one))
        if all(size.held is None for size in found):
            raise MissingFact(f"sizes in the safetensors header of {one.model.reference}")
        wrong = [size for size in found if size.held not in (None, size.built)]
        if not wrong:
            continue
        # what ends the start is told before what is cut
        size = next((each for each in wrong if refused(each)), wrong[0])
        silent = not refused(size) and usual_heads(one)
        end = "only the first of them are loaded, and what it says is wrong" if silent else "they do not load"
        yield Finding(
            f"{size.tensor} of the {one.side} has {size.held}, and its config makes it {size.built} ({size.key}): "
            f"{end}.",
            one.model.at(size.key),
            "silent" if silent else "load",
            repair=Repair("manual", "take the config.json that was published with these weights"),
        )


def refused(size: Size) -> bool:
    """Whether it does not load."""
    return not size.cut or (size.held or 0) < size.built


def usual_heads(one: BuiltModel) -> bool:
    """Whether attention can be built at all: key heads that share the query heads, and pairs of numbers to rotate."""
    heads, kv_heads, size = one.heads()
    return heads % kv_heads == 0 and size % 2 == 0


def sizes(one: BuiltModel) -> Iterator[Size]:
    """What a plain checkpoint tells."""
    model = one.model
    hidden, inner, vocabulary = (model.integer(f"{key}_size") for key in ("hidden", "intermediate", "vocab"))
    heads, kv_heads, size = one.heads()
    yield Size("hidden_size", "embed_tokens.weight", one.size("model.embed_tokens.weight", 1), hidden, False)
    yield Size("vocab_size", "embed_tokens.weight", one.size("model.embed_tokens.weight", 0), vocabulary, False)
    if not model.config.value("tie_word_embeddings"):  # else one in the checkpoint may be passed over
        yield Size("vocab_size", "lm_head.weight", one.size("lm_head.weight", 0), vocabulary, False)
    yield Size("intermediate_size", "gate_proj.weight", one.size(f"{LAYER}.mlp.gate_proj.weight", 0), inner, True)
    yield Size("intermediate_size", "down_proj.weight", one.size(f"{LAYER}.mlp.down_proj.weight", 1), inner, True)
    queries, norm = (one.size(f"{LAYER}.self_attn.{name}.weight", 0) for name in ("q_proj", "q_norm"))
    key = "head_dim" if one.built.head_dim and model.config.stated("head_dim") else "num_attention_heads"
    if norm != queries:  # else it is one for all heads
        yield Size(key, "q_norm.weight", norm, size, False)
    yield Size("num_attention_heads", "q_proj.weight", queries, heads * size, True)
    yield Size(
        "num_key_value_heads", "k_proj.weight", one.size(f"{LAYER}.self_attn.k_proj.weight", 0), kv_heads * size, True
    )
