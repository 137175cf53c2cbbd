"""Memory that weights take, counted and estimated."""

from __future__ import annotations

from typing import Any

import pytest

from specfix.deployment import Draft, Serving, Target
from specfix.deployment.config import Config
from specfix.deployment.model import Tensor
from specfix.deployment.presets import PRESETS
from specfix.engines.find import find_engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.budget import GIB
from specfix.facts.memory import Weights, memory, weights

DENSE = {
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "vocab_size": 100,
}
LAYER = 16 * 4 * (2 * 4 + 2 * 2) + 3 * 16 * 32


def target(values: dict[str, Any], tensors: dict[str, Tensor] | None = None) -> Target:
    return Target("target", Config(values, "target.json"), tensors=tensors)


def test_estimated_from_below() -> None:
    assert weights(target(DENSE)) == Weights(2 * (2 * LAYER + 2 * 1600), False)
    assert weights(target({**DENSE, "tie_word_embeddings": True})) == Weights(2 * (2 * LAYER + 1600), False)
    head = Draft("draft", Config(DENSE, "draft.json"), kind="eagle3")
    assert weights(head) == Weights(2 * 2 * LAYER, False)


@pytest.mark.parametrize(
    "more",
    [{"quantization_config": {"quant_method": "fp8"}}, {"num_experts": 8}, {"kv_lora_rank": 4}, {"dtype": "float32"}],
)
def test_what_no_config_tells(more: dict[str, Any]) -> None:
    with pytest.raises(MissingFact):
        weights(target({**DENSE, **more}))


def test_counted_from_headers() -> None:
    tensors = {
        "a": Tensor("BF16", (2, 3), "model.safetensors"),
        "b": Tensor("F4", (4,), "model.safetensors"),
        "c": Tensor("F32", (100,), "consolidated.safetensors"),
    }
    assert weights(target({}, tensors)) == Weights(14, True)
    assert weights(target({}, {"c": tensors["c"]})) == Weights(400, True)
    with pytest.raises(MissingFact, match="Q9"):
        weights(target({}, {"a": Tensor("Q9", (2,), "model.safetensors")}))


def test_of_one_device() -> None:
    engine, hardware = find_engine("vllm==0.26.0"), PRESETS["h200"]
    tensors = {"a": Tensor("U8", (8 * GIB,), "model.safetensors")}
    draft = Draft("draft", Config({}, "draft.json"), tensors=tensors)
    serving = Serving(tensor_parallel_size=2, flags={"gpu_memory_utilization": 0.5})
    found = memory(target({}, tensors), draft, serving, "eagle3", engine, hardware)
    assert (found.needed, found.share) == (8 * GIB, 0.5)
    own = Draft("target", Config({}, "target.json"), tensors=tensors)
    assert memory(target({}, tensors), own, serving, "mtp", engine, hardware).needed == 4 * GIB
    for flags in ({"quantization": "fp8"}, {"cpu_offload_gb": 4}):
        with pytest.raises(NotApplicable):
            memory(target({}, tensors), draft, Serving(flags=flags), "eagle3", engine, hardware)
    with pytest.raises(NotApplicable):
        memory(target({}, tensors), draft, serving, "eagle3", engine, PRESETS["cpu"])
    with pytest.raises(MissingFact, match="utilization"):
        bad = Serving(flags={"gpu_memory_utilization": "most"})
        memory(target({}, tensors), draft, bad, "eagle3", engine, hardware)


def test_what_is_not_loaded_or_not_kept_does_not_count() -> None:
    engine, hardware = find_engine("vllm==0.26.0"), PRESETS["h200"]
    table, other = Tensor("U8", (100, 16), "model.safetensors"), Tensor("U8", (50, 16), "model.safetensors")
    ours = {"model.embed_tokens.weight": table, "model.layers.2.mlp.w": other, "mtp.fc.weight": other}
    theirs = {"embed_tokens.weight": table, "lm_head.weight": other, "fc.weight": other}
    whole, serving = target({"num_hidden_layers": 2}, ours), Serving()
    head = Draft("draft", Config({}, "draft.json"), kind="eagle3", tensors=theirs)
    found = memory(whole, head, serving, "eagle3", engine, hardware)
    assert (found.target.size, found.draft.size) == (1600, 1600)  # no MTP layers; the draft's own head and fc
    model = Draft("draft", Config({}, "draft.json"), kind="draft_model", tensors=theirs)
    assert memory(whole, model, serving, "draft_model", engine, hardware).draft.size == 3200
    own = Draft("target", Config({}, "target.json"), tensors=ours)
    assert memory(whole, own, serving, "mtp", engine, hardware).target.size == 3200
    tied = target({"tie_word_embeddings": True}, {"lm_head.weight": table, "w": other})
    assert memory(tied, model, serving, "draft_model", engine, hardware).target.size == 800
    unknown = memory(target(DENSE), head, serving, "eagle3", engine, hardware)
    assert unknown.draft.size == 800  # either table may be the target's


def test_float32_is_served_in_two_bytes() -> None:
    tensors = {"w": Tensor("F32", (2, 3), "model.safetensors"), "scale": Tensor("F32", (2,), "model.safetensors")}
    assert weights(target({}, tensors)) == Weights(20, True)
    assert weights(target({}, tensors), wide=True) == Weights(32, True)


def test_experts_are_cut_among_data_parallel_ranks() -> None:
    engine, hardware = find_engine("vllm==0.26.0"), PRESETS["h200"]
    tensors = {"a": Tensor("U8", (8 * GIB,), "model.safetensors")}
    draft = Draft("draft", Config({}, "draft.json"), tensors=tensors)
    wide = {"data_parallel_size": 4}
    for values, flags, cut in (
        ({"num_experts": 8}, wide, 8),
        ({"num_experts": 8}, wide | {"prefill_context_parallel_size": 2}, 16),
        ({"num_experts": 0}, wide, 2),
        ({}, wide, 2),
        ({}, wide | {"enable_expert_parallel": True}, 8),
    ):
        serving = Serving(tensor_parallel_size=2, flags=flags)
        assert memory(target(values, tensors), draft, serving, "eagle3", engine, hardware).cut == cut
    own = Serving(tensor_parallel_size=4, speculative={"draft_tensor_parallel_size": 1})
    assert memory(target({}, tensors), draft, own, "eagle3", engine, hardware).draft_cut == 4


@pytest.mark.parametrize("flag", ["offload_group_size", "language_model_only"])
def test_weights_that_are_kept_elsewhere_or_left_out(flag: str) -> None:
    engine, hardware = find_engine("vllm==0.32.0"), PRESETS["h200"]
    with pytest.raises(NotApplicable):
        memory(target(DENSE), Draft("d", Config(DENSE, "d.json")), Serving(flags={flag: 4}), "eagle3", engine, hardware)


def test_tables_of_n_grams() -> None:
    engine, hardware = find_engine("vllm==0.32.0"), PRESETS["h200"]
    draft = Draft("draft", Config(DENSE, "draft.json"))
    memory(target({**DENSE, "ple_layer_ids": []}), draft, Serving(), "draft_model", engine, hardware)
    with pytest.raises(MissingFact, match="n-grams"):
        memory(target({**DENSE, "ple_layer_ids": [1]}), draft, Serving(), "draft_model", engine, hardware)


def test_a_stated_size_of_the_kv_cache_leaves_the_rest() -> None:
    engine, hardware = find_engine("vllm==0.32.0"), PRESETS["h200"]
    serving = Serving(flags={"kv_cache_memory_bytes": 2**30, "gpu_memory_utilization": 0.1})
    found = memory(target(DENSE), Draft("d", Config(DENSE, "d.json")), serving, "draft_model", engine, hardware)
    assert found.share == 1
