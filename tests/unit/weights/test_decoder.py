"""A whole model's checkpoint beside what is built."""

from __future__ import annotations

import pytest

from specfix.deployment import Target
from specfix.deployment.config import Config
from specfix.deployment.model import Tensor
from specfix.engines.facts.drafting import Decoder
from specfix.errors import MissingFact
from specfix.facts.decoder import BuiltModel

BUILT = Decoder(
    parts=("embed_tokens", "layers", "norm"),
    layer_parts=("input_layernorm", "mlp", "self_attn"),
    head_dim=True,
    strict=True,
    beside=("config", "lm_head", "model"),
)
FIRST = ("model.embed_tokens.weight", "model.layers.0.input_layernorm.weight")


def model(*names: str, dtype: str = "BF16", **config: object) -> BuiltModel:
    tensors = {name: Tensor(dtype, (64, 32), "f") for name in (*FIRST, *names)}
    return BuiltModel(Target("t", Config(config, "config.json"), tensors=tensors), "target", "Plain", BUILT)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("lm_head.weight", True),
        ("mtp.fc.weight", False),
        ("score.bias", True),
        ("model.norm.weight", True),
        ("model.gate.weight", False),
        ("model.layers.9.mlp.gate_proj.weight", True),
        ("model.layers.0.experts.0.weight", False),
        ("model.layers.0.self_attn.q_proj.bias", True),
        ("model.layers.0.self_attn.k_proj.k_scale", True),
        ("model.layers.0.self_attn.q_proj.weight_scale", False),
        ("model.layers.0.self_attn.rotary_emb.inv_freq", True),
    ],
)
def test_places(name: str, place: bool) -> None:
    assert model().has_place(name) is place


def test_sizes() -> None:
    one = model("model.layers.1.mlp.down_proj.weight", "model.layers.0.mlp.down_proj.weight")
    assert one.layers == (0, 1)
    assert one.size("model.layers.*.mlp.down_proj.weight", 1) == 32
    assert one.size("model.layers.*.mlp.up_proj.weight", 0) is None
    assert model("model.layers.1.mlp.down_proj.weight").size("model.layers.*.mlp.down_proj.weight", 1) is None


def test_heads() -> None:
    assert model(num_attention_heads=4, hidden_size=64).heads() == (4, 4, 16)
    assert model(num_attention_heads=4, num_key_value_heads=2, head_dim=8).heads() == (4, 2, 8)
    with pytest.raises(MissingFact):
        model(num_attention_heads=0, hidden_size=64).heads()


def test_weights_that_are_not_read() -> None:
    none = BuiltModel(Target("t", Config({}, "config.json")), "target", "Plain", BUILT)
    other = BuiltModel(
        Target("t", Config({}, "c"), tensors={"wte": Tensor("BF16", (1,), "f")}), "target", "Plain", BUILT
    )
    for one in (none, other, model("model.layers.0.mlp.up_proj.weight", dtype="I32")):
        with pytest.raises(MissingFact):
            one.tensors  # noqa: B018
