"""A whole model's checkpoint beside what is built."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from specfix_rules.weights.layers_against_weights import layers_against_weights
from specfix_rules.weights.model_head_missing import model_head_missing
from specfix_rules.weights.model_norm_missing import model_norm_missing

from specfix.deployment import Serving, Target
from specfix.deployment.config import Config
from specfix.deployment.model import Tensor
from specfix.engines.facts.drafting import Decoder
from specfix.engines.find import find_engine
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


@pytest.mark.parametrize(
    ("flags", "phase"),
    [
        ({}, "load"),
        ({"model_loader_extra_config": {"enable_weights_track": None}}, "load"),
        ({"model_loader_extra_config": {"enable_weights_track": True}}, "load"),
        ({"model_loader_extra_config": {"enable_weights_track": False}}, "silent"),
    ],
)
def test_what_is_not_filled_is_told_of_by_the_loader_or_by_nobody(flags: dict[str, Any], phase: str) -> None:
    serving, one = Serving(flags=flags), model(num_hidden_layers=2, architectures=["Plain"])
    engine = find_engine("0.26.0")
    found = [
        *model_norm_missing.predicate(serving, engine, one),
        *layers_against_weights.predicate(serving, engine, one),
    ]
    assert [each.phase for each in found] == [phase, phase]
    more = next(layers_against_weights.predicate(serving, engine, model("model.layers.1.x", num_hidden_layers=1)))
    assert more.phase == "load"  # a name that is not known is refused all the same


@pytest.mark.parametrize("value", [None, True, False])
@pytest.mark.parametrize("release", ["0.10.0", "0.20.2"])
def test_a_release_that_refuses_to_be_told_not_to_look(release: str, value: bool | None) -> None:
    serving = Serving(flags={"model_loader_extra_config": {"enable_weights_track": value}})
    engine, one = find_engine(release), model(num_hidden_layers=2, architectures=["Plain"])
    for rule in (model_norm_missing, layers_against_weights):
        (said,) = rule.predicate(serving, engine, one)
        assert said.phase == "load" and f"vllm {release} refuses enable_weights_track in model_loader_" in said.message
        (said,) = rule.predicate(Serving(flags={"model_loader_extra_config": {"num_threads": 8}}), engine, one)
        assert said.phase == "load" and "refuses" not in said.message
    unread = replace(engine, eagle=replace(engine.eagle, load_keys=None))
    with pytest.raises(MissingFact, match="which keys vllm"):
        list(model_norm_missing.predicate(serving, unread, one))


@pytest.mark.parametrize(
    ("names", "tied", "found"),
    [
        ((), False, True),
        (("model.norm.weight",), False, True),
        ((), True, False),
        (("lm_head.weight",), False, False),
        (("lm_head.qweight",), False, False),
        (("output.weight",), False, False),  # it may be the head
        (("model.lm_head.weight",), False, False),
    ],
)
def test_a_head_that_is_not_there(names: tuple[str, ...], tied: bool, found: bool) -> None:
    one = model(*names, tie_word_embeddings=tied)
    for release, phase in {"0.10.0": "load", "0.20.2": "load", "0.21.0": "silent", "0.33.0": "silent"}.items():
        said = list(model_head_missing.predicate(find_engine(release), one))
        assert [each.phase for each in said] == [phase] * found


def test_a_head_of_which_the_config_says_nothing() -> None:
    engine = find_engine("0.26.0")
    with pytest.raises(MissingFact, match="tie_word_embeddings"):
        list(model_head_missing.predicate(engine, model()))
    headless = BuiltModel(model().model, "target", "Plain", replace(BUILT, beside=("model",)))
    assert not list(model_head_missing.predicate(engine, headless))


def test_a_draft_model_without_a_head() -> None:
    target = model("lm_head.weight", tie_word_embeddings=False)
    draft = BuiltModel(model(tie_word_embeddings=False).model, "draft", "Plain", BUILT)
    (found,) = model_head_missing.predicate(find_engine("0.26.0"), target, draft)
    assert "the draft" in found.message and "drafts with what was in memory" in found.message
