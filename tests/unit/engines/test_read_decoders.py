"""Whole models of plain layers: what they build, and whether each name must have its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.engines.facts.drafting import Decoder
from specfix.engines.readers.decoders import read_decoder
from specfix.engines.source.classes import Classes
from specfix.engines.source.tree import SourceTree

MODEL = """
from vllm.model_executor.models.utils import AutoWeightsLoader, make_layers

class MLP:
    def __init__(self, hidden_size, intermediate_size):
        self.gate_up_proj = MergedColumnParallelLinear(hidden_size, [intermediate_size] * 2)

class Attention:
    def __init__(self, config, hidden_size, num_heads, num_kv_heads):
        self.total_num_heads = num_heads
        self.total_num_kv_heads = num_kv_heads
        head_dim = getattr(config, "head_dim", None)
        self.head_dim = head_dim or hidden_size // self.total_num_heads
        self.qkv_proj = QKVParallelLinear(hidden_size, self.head_dim, self.total_num_heads, self.total_num_kv_heads)

class PlainLayer:
    def __init__(self, config):
        self.self_attn = Attention(
            config, config.hidden_size, num_heads=config.num_attention_heads,
            num_kv_heads=getattr(config, "num_key_value_heads", config.num_attention_heads))
        self.mlp = MLP(config.hidden_size, intermediate_size=config.intermediate_size)
        self.input_layernorm = RMSNorm(config.hidden_size)

class Inner:
    def __init__(self, config, layer_type=PlainLayer):
        self.embed_tokens = Embedding(config.vocab_size)
        self.start, self.end, self.layers = make_layers(
            config.num_hidden_layers, lambda prefix: layer_type(config=config))

    def load_weights(self, weights):
        loader = AutoWeightsLoader(self)
        return loader.load_weights(weights)

class Outer:
    def __init__(self, config):
        self.model = self._init_model(config)
        self.lm_head = Head(config.vocab_size)

    def _init_model(self, config):
        return Inner(config)

    def load_weights(self, weights):
        \"\"\"Loads them; an mtp layer is none of its business.\"\"\"
        loader = AutoWeightsLoader(self, skip_prefixes=(["lm_head."] if self.config.tie_word_embeddings else None))
        return loader.load_weights(weights)
"""
UTILS = """
class AutoWeightsLoader: ...
def make_layers(count, layer): ...
"""


def read(folder: Path, text: str) -> Decoder | None:
    models = folder / "model_executor" / "models"
    models.mkdir(parents=True)
    (models / "plain.py").write_text(text)
    (models / "utils.py").write_text(UTILS)
    tree = SourceTree(folder)
    return read_decoder(tree, Classes(tree), "plain:Outer")


def test_a_plain_model(tmp_path: Path) -> None:
    assert read(tmp_path, MODEL) == Decoder(
        parts=("embed_tokens", "end", "layers", "start"),
        layer_parts=("input_layernorm", "mlp", "self_attn"),
        head_dim=True,
        strict=True,
        beside=("lm_head", "model"),
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('skip_prefixes=(["lm_head."] if self.config.tie_word_embeddings else None)', 'skip_prefixes=["mtp."]'),
        ('["lm_head."] if', '["lm_head.", "model.mtp"] if'),
        ("class Inner:", 'class Inner:\n    mapper = WeightsMapper(orig_to_new_prefix={"mtp.": None})'),
        ("class Inner:", "class Inner:\n    mapper = WeightsMapper(orig_to_new_prefix=of_mtp())"),
        (
            "        loader = AutoWeightsLoader(self)\n        return loader.load_weights(weights)\n\nclass Outer",
            "        for name, weight in weights:\n"
            "            if name not in params_dict: continue\n"
            "            param = params_dict[name]\n\nclass Outer",
        ),
    ],
)
def test_names_that_are_passed_over(tmp_path: Path, old: str, new: str) -> None:
    assert old in MODEL
    found = read(tmp_path, MODEL.replace(old, new))
    assert found is not None and not found.strict


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("config.num_hidden_layers, lambda", "len(config.blocks), lambda"),
        ("[intermediate_size] * 2", "[intermediate_size, 1]"),
        ("self.total_num_heads, self.total_num_kv_heads)", "2 * self.total_num_heads, self.total_num_kv_heads)"),
        ("intermediate_size=config.intermediate_size", "intermediate_size=config.ffn[0]"),
        ("head_dim or hidden_size //", "config.sizes[0] or hidden_size //"),
        ("return Inner(config)", "return made(config)"),
        ("class PlainLayer:", "class PlainLayer:\n    experts = 8"),
        ("layer_type=PlainLayer", "layer_type=chosen()"),
        ("AutoWeightsLoader(self, skip", "other_loader(self, skip"),
    ],
)
def test_another_model(tmp_path: Path, old: str, new: str) -> None:
    assert old in MODEL
    assert read(tmp_path, MODEL.replace(old, new)) is None


def test_heads_by_the_hidden_size_alone(tmp_path: Path) -> None:
    text = MODEL.replace('        head_dim = getattr(config, "head_dim", None)\n', "").replace(
        "head_dim or hidden", "hidden"
    )
    found = read(tmp_path, text)
    assert found is not None and found.head_dim is False
