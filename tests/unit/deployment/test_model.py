from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specfix.deployment import Draft, Location, Target
from specfix.deployment.model import AuxIds, Tensor
from specfix.errors import MissingFact

from .samples import LLAMA, SPECULATORS, config


def draft(values: dict[str, Any]) -> Draft:
    return Draft("draft", config(values), speculators="speculators_model_type" in values)


def test_integer_and_number() -> None:
    target = Target("target", config({"text_config": {"hidden_size": 4096.0}, "odd": "7", "list": [1]}))
    assert target.integer("absent", "hidden_size") == 4096
    assert target.number("absent") is None
    with pytest.raises(MissingFact, match=r"absent in config\.json"):
        target.integer("absent")
    for key in ("odd", "list"):
        with pytest.raises(MissingFact, match=f"a whole number at /{key} in config.json"):
            target.number(key)


def test_at_says_where_an_absent_key_would_stand() -> None:
    target = Target("target", config({"text_config": {"hidden_size": 1}, "vocab_size": 2}))
    place = target.at("hidden_size")
    assert (place, place.line) == (Location("config.json", "/text_config/hidden_size"), 3)
    assert target.at("vocab_size").pointer == "/vocab_size"
    assert target.at("max_position_embeddings").pointer == "/text_config/max_position_embeddings"
    head = draft(SPECULATORS)
    assert head.at("rope_theta").pointer == "/transformer_layer_config/rope_theta"
    assert head.at("eagle_aux_hidden_state_layer_ids").pointer == "/eagle_aux_hidden_state_layer_ids"


def test_tensor() -> None:
    bare = Target("target", config(LLAMA))
    with pytest.raises(MissingFact, match="a safetensors header of target"):
        bare.tensor("fc.weight")
    fc = Tensor("BF16", (4, 12), "model.safetensors")
    loaded = Target("target", config(LLAMA), tensors={"model.fc.weight": fc})
    assert loaded.tensor("fc.weight", "model.fc.weight") is fc
    with pytest.raises(MissingFact, match="a tensor d2t in"):
        loaded.tensor("d2t", "model.d2t")


def test_tokenizer(tmp_path: Path) -> None:
    good, bad = tmp_path / "tokenizer.json", tmp_path / "tokenizer_config.json"
    good.write_text('{"model": {}}')
    bad.write_text("{")
    model = Target("target", config(LLAMA), tokenizer_files=(str(good), str(bad)))
    assert model.tokenizer("tokenizer.json") == {"model": {}}
    with pytest.raises(MissingFact, match="not valid JSON"):
        model.tokenizer("tokenizer_config.json")
    with pytest.raises(MissingFact, match=r"vocab\.json of target"):
        model.tokenizer("vocab.json")


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ({}, {}),
        ({"eagle_aux_hidden_state_layer_ids": None, "target_layer_ids": []}, {}),
        ({"dflash_config": {}, "eagle_config": None}, {}),
        (
            {"target_layer_ids": [3], "dflash_config": {"target_layer_ids": [2]}},
            {
                "dflash_config.target_layer_ids": ((2,), "/dflash_config/target_layer_ids"),
                "target_layer_ids": ((3,), "/target_layer_ids"),
            },
        ),
        (
            {
                "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2]},
                "eagle_aux_hidden_state_layer_ids": [4],
                "dspark_target_layer_ids": [0],
            },
            {
                "eagle_aux_hidden_state_layer_ids": ((4,), "/eagle_aux_hidden_state_layer_ids"),
                "eagle_config.eagle_aux_hidden_state_layer_ids": (
                    (1, 2),
                    "/eagle_config/eagle_aux_hidden_state_layer_ids",
                ),
                "dspark_target_layer_ids": ((0,), "/dspark_target_layer_ids"),
            },
        ),
        (
            {"speculators_model_type": "dflash", "aux_hidden_state_layer_ids": [3, 13]},
            {
                "eagle_aux_hidden_state_layer_ids": ((3, 13), "/aux_hidden_state_layer_ids"),
                "aux_hidden_state_layer_ids": ((3, 13), "/aux_hidden_state_layer_ids"),
            },
        ),
    ],
)
def test_aux_places(values: dict[str, Any], places: dict[str, tuple[tuple[int, ...], str]]) -> None:
    expected = {key: AuxIds(*place) for key, place in places.items()}
    head = draft(values)
    assert head.aux_places() == expected
    assert list(head.aux_places()) == list(expected)
    assert head.aux_ids == next(iter(expected.values()), None)


def test_aux_ids_at_any_place_that_an_engine_names() -> None:
    head = draft({"novel_config": {"ids": [1, 2]}, "novel": "three", "eagle_config": {"layer_ids": [4]}})
    assert head.aux_ids_at("novel_config.ids") == AuxIds((1, 2), "/novel_config/ids")
    assert head.aux_ids_at("novel") is head.aux_ids_at("novel.ids") is head.aux_ids_at("absent.ids") is None
    assert head.aux_places() == {"eagle_config.layer_ids": AuxIds((4,), "/eagle_config/layer_ids")}


@pytest.mark.parametrize(
    ("values", "layers"),
    [
        ({}, None),
        ({"num_nextn_predict_layers": 0}, 0),
        ({"num_nextn_predict_layers": 3}, 3),
        ({"text_config": {"mtp_num_hidden_layers": 1}}, 1),
        ({"num_mtp_modules": 7, "num_nextn_predict_layers": 1}, 7),
        ({"num_nextn_predict_layers": 0, "text_config": {"mtp_num_hidden_layers": 1}}, 1),
        ({"mtp_config": {"num_nextn_predict_layers": 2}}, 2),
        ({"num_nextn_predict_layers": None, "mtp_config": None}, None),
    ],
)
def test_mtp_layers(values: dict[str, Any], layers: int | None) -> None:
    assert Target("target", config(values)).mtp_layers == layers


def test_names() -> None:
    target = Target("target", config({"architectures": None, "text_config": {"model_type": "qwen3"}}))
    assert (target.architectures, target.model_type) == ((), "qwen3")
    assert [rope.rope_type for rope in target.ropes] == ["default"]
