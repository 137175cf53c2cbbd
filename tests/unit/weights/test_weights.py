"""A head's checkpoint beside what is built: names that have a place, and what is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from specfix_rules.weights.layer_count import layer_count

from specfix.deployment import Draft
from specfix.deployment.config import Config
from specfix.deployment.headers import read_tensors
from specfix.deployment.model import Tensor
from specfix.engines.facts.drafting import Head
from specfix.engines.find import find_engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.weights import DraftHead, absent, attention
from specfix.testing import write_header

HEAD = Head(
    parts=(
        "fc",
        "fc_norm.*",
        "norm",
        "lm_head",
        "layers.*.self_attn.**",
        "layers.*.self_attn.q_proj",
        "mask_embedding",
    ),
    layers="config",
    doubled=True,
    keys=(),
    mapping="always",
    notes_own=(),
    skipped=("t2d",),
    renames={"midlayer.": "layers.0."},
    fc_bias=False,
    qkv_bias="attention_bias",
    biases={"mlp": ("mlp_bias",), "self_attn.o_proj": ("attention_bias", "bias")},
)


def head(*names: str, **config: object) -> DraftHead:
    values = {"num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 4, **config}
    tensors = {name: Tensor("BF16", (64, 64), "f") for name in names}
    return DraftHead("Head", HEAD, Draft("draft", Config(values, "config.json"), tensors=tensors), values)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("fc.weight", True),
        ("fc.bias", False),
        ("fc_norm.2.weight", True),
        ("norm.weight", True),
        ("lm_head.weight", True),
        ("t2d", True),
        ("d2t", True),
        ("midlayer.self_attn.q_proj.weight", True),
        ("midlayer.self_attn.q_proj.bias", False),
        ("midlayer.self_attn.anything.weight", True),
        ("layers.0.mlp.up_proj.weight", False),
        ("model.fc.weight", False),
        ("mask_embedding", True),
        ("layers.0.self_attn.rotary_emb.inv_freq", True),
    ],
)
def test_a_place(name: str, place: bool) -> None:
    one = head(name)
    assert one.has_place(next(iter(one.tensors))) is place


def test_biases_that_the_config_promises() -> None:
    one = head("layers.0.self_attn.q_proj.bias", attention_bias=True)
    assert one.has_place("layers.0.self_attn.q_proj.bias")


@pytest.mark.parametrize(
    ("config", "promised"),
    [
        ({}, []),
        ({"bias": True}, [("self_attn.o_proj", "bias")]),
        ({"mlp_bias": 1}, [("mlp.down_proj", "mlp_bias")]),
        (
            {"attention_bias": True, "bias": True},
            [("self_attn.q_proj", "attention_bias"), ("self_attn.o_proj", "attention_bias")],
        ),
    ],
)
def test_promised_biases(config: dict[str, object], promised: list[tuple[str, str]]) -> None:
    assert list(head("fc.weight", **config).promised_biases()) == promised
    assert head("layers.0.self_attn.o_proj.bias", bias=True).has_place("layers.0.self_attn.o_proj.bias")
    assert not head("layers.0.self_attn.o_proj.bias").has_place("layers.0.self_attn.o_proj.bias")


def test_what_is_missing() -> None:
    assert absent(head("midlayer.self_attn.q_proj.weight")) == ["fc", "norm"]
    assert absent(head("fc.qweight", "norm.weight", "midlayer.self_attn.qkv_proj.weight")) == []
    assert absent(head("fc.weight", "norm.weight", "midlayer.mlp.up_proj.weight")) == ["layers.0.self_attn.q_proj"]


def test_heads_of_attention() -> None:
    assert attention(head("fc.weight")) == (4, 4, 16)
    assert attention(head("fc.weight", head_dim=8, num_key_value_heads=2)) == (4, 2, 8)
    with pytest.raises(NotApplicable):
        attention(head("fc.weight", kv_lora_rank=8))


def test_no_header() -> None:
    one = DraftHead("Head", HEAD, Draft("draft", Config({}, "config.json")), {})
    with pytest.raises(MissingFact, match="header"):
        one.named("d2t")
    with pytest.raises(MissingFact, match="header"):
        _ = one.tensors


def test_small_tensors_are_read(tmp_path: Path) -> None:
    described = {
        "d2t": {"dtype": "I64", "shape": [3], "values": [0, 5, -1]},
        "t2d": {"dtype": "BOOL", "shape": [2], "values": [1, 0]},
        "fc.weight": [2, 2],
        "large": {"dtype": "I64", "shape": [1_000_000]},
    }
    write_header(tmp_path / "model.safetensors", described)
    tensors = read_tensors(tmp_path)
    assert tensors is not None
    draft = Draft("draft", Config({}, "config.json"), folder=tmp_path, tensors=tensors)
    assert list(draft.integers(tensors["d2t"])) == [0, 5, -1] and list(draft.integers(tensors["t2d"])) == [1, 0]
    for name in ("fc.weight", "large"):
        with pytest.raises(MissingFact):
            draft.integers(tensors[name])
    with pytest.raises(MissingFact):
        Draft("draft", Config({}, "config.json"), tensors=tensors).integers(tensors["d2t"])


def test_a_bias_that_is_passed_over() -> None:
    name = "midlayer.self_attn.q_proj.bias"
    assert head(name).passed_over() == []
    lenient = DraftHead("Head", replace(HEAD, passes_bias=True), head(name, "fc.bias").draft, {})
    assert lenient.passed_over() == ["layers.0.self_attn.q_proj.bias", "fc.bias"]
    assert all(map(lenient.has_place, lenient.tensors)) and not lenient.has_place("gate.bias")


def test_names_that_the_class_changes() -> None:
    names = ("model.layers.0.self_attn.q_proj.weight", "encoder.fc.weight", "block.self_attn.q_proj.weight")
    patterns = {r"(?<![A-Za-z0-9_])encoder\.fc(?=\.|$)": "fc", r"^block(?=\.)": "midlayer"}
    built = replace(HEAD, prefixes={"model.": ""}, patterns=patterns)
    for name in names:
        one = head(name)
        assert not one.has_place(name)
        renamed = replace(one, built=built)
        assert all(map(renamed.has_place, renamed.tensors)) and list(renamed.original.values()) == [name]
    one = replace(head("submodel.fc.weight", "model.model.fc.weight", "my_encoder.fc.weight"), built=built)
    assert list(one.tensors) == ["submodel.fc.weight", "model.fc.weight", "my_encoder.fc.weight"]
    assert not any(map(one.has_place, one.tensors))


def test_names_that_are_changed_in_ways_that_are_not_read() -> None:
    built = replace(HEAD, renames_unread=True)
    one = replace(head("fc.weight", "refiner.mlp.weight", "lm_head.weight"), built=built)
    assert one.has_place("fc.weight")
    with pytest.raises(MissingFact, match="which names Head gives"):
        one.has_place("refiner.mlp.weight")
    with pytest.raises(MissingFact, match="which names Head gives"):
        absent(one)  # there is no norm
    assert not absent(replace(one, draft=head("fc.weight", "norm.weight").draft))


@pytest.mark.parametrize(
    ("release", "architecture", "name", "place"),
    [
        *(
            (release, "EagleLlama4ForCausalLM", name, place)
            for release in ("0.10.0", "0.16.0", "0.24.0", "0.25.0", "0.33.0")
            for name, place in (
                ("model.layers.0.self_attn.q_proj.weight", True),
                ("layers.0.self_attn.q_proj.weight", True),
                ("model.model.layers.0.self_attn.q_proj.weight", False),
            )
        ),
        *(
            (release, "DFlashMuseGlimmerAssistantModel", name, place)
            for release in ("0.28.0", "0.32.0", "0.33.0")
            for name, place in (
                ("encoder.output_norm_enc.weight", True),
                ("encoder.fc.weight", True),
                ("midlayer.mlp.up_proj.weight", True),
                ("encoder.layers.0.weight", False),
            )
        ),
        ("0.33.0", "DFlashDraftModel", "midlayer_extra.mlp.up_proj.weight", False),
        # its own loading, in which nothing is renamed, and one in which nothing unknown is refused
        ("0.33.0", "DFlashLagunaForCausalLM", "midlayer.mlp.up_proj.weight", False),
        ("0.33.0", "Gemma4DSparkModel", "stray.weight", True),
        ("0.33.0", "MuseSparkDSparkModel", "t2d", True),
        ("0.33.0", "MuseSparkDSparkModel", "mask_embedding", True),
        ("0.33.0", "MuseSparkDSparkModel", "stray.weight", False),
        ("0.33.0", "Qwen3XPressModel", "xpress_head.mix.L", True),
    ],
)
def test_names_in_releases(release: str, architecture: str, name: str, place: bool) -> None:
    one = replace(head(name), architecture=architecture, built=find_engine(release).eagle.heads[architecture])
    assert [one.has_place(each) for each in one.tensors] == [place]


def test_norms_that_the_config_has_to_ask_for() -> None:
    name = "fc_norm.0.weight"
    built = replace(HEAD, parts=("fc", "fc_norm.*"), keys=("fc_norm",))
    for asked in (True, False):
        assert DraftHead("Head", built, head(name).draft, {"fc_norm": asked}).has_place(name) is asked
    lenient = replace(built, passes_unknown=True)
    assert DraftHead("Head", lenient, head(name).draft, {"fc_norm": False}).has_place(name)


@pytest.mark.parametrize(
    ("layers", "built", "said", "phase"),
    [
        ((0,), 1, "", ""),
        ((0, 1), 2, "", ""),
        ((0, 1), 1, "have 2 layers, and num_hidden_layers is 1: layers.1 finds no place", "load"),
        ((0,), 3, "have 1 layers, and num_hidden_layers is 3: layers 1 to 2 keep", "silent"),
        ((7,), 1, "have layers.7, and num_hidden_layers is 1: layers.7 finds no place", "load"),
        ((0, 7), 1, "have layers.0 and layers.7, and num_hidden_layers is 1: layers.7 finds no place", "load"),
        ((0, 7), 2, "layers.7 finds no place", "load"),
        ((5, 7, 6), 1, "have layers.5 to layers.7, and num_hidden_layers is 1: layers.5 finds no place", "load"),
    ],
)
def test_numbers_of_layers(layers: tuple[int, ...], built: int, said: str, phase: str) -> None:
    one = head(*(f"layers.{layer}.mlp.up_proj.weight" for layer in layers), num_hidden_layers=built)
    found = list(layer_count.predicate(one.draft, one))
    assert [each.phase for each in found] == ([phase] if said else [])
    assert all(said in each.message for each in found)
    assert all(each.repair and bool(each.repair.changes) is (max(layers) < len(layers)) for each in found)


def test_numbers_that_are_no_layers() -> None:
    passed = ("layers.7.self_attn.rotary_emb.inv_freq", "layers.9.mlp.up_proj.weight_scale")
    one = head("layers.0.mlp.up_proj.weight", *passed)
    assert one.layer_indices() == [0] and not list(layer_count.predicate(one.draft, one))
    lenient = replace(one, built=replace(HEAD, passes_unknown=True), draft=head("layers.7.a.weight").draft)
    for each in (lenient, head("fc.weight"), head("layers.7.a.weight", num_hidden_layers=8)):
        with pytest.raises(MissingFact, match="numbered from 0"):
            list(layer_count.predicate(each.draft, each))
