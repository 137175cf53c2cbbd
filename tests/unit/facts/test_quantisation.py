"""What a quantization_config spares, and what of MTP layers the headers say."""

from __future__ import annotations

from typing import Any

import pytest

from specfix.deployment.config import Config
from specfix.deployment.model import Target, Tensor
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.quantisation import form, matches, method_name, mtp_tensors, sparing, spellings

NAME = "mtp.layers.0.self_attn.q_proj"


@pytest.mark.parametrize(
    "entry",
    [
        NAME,
        "re:.*mtp.*",
        "-:.*mtp.*",
        "mtp*",
        "mtp.layers.0*",
        "self_attn",
        "model.layers.64.self_attn.q_proj",
        "re:.*layers\\.64\\..*",
        "mtp.layers.0.self_attn.qkv_proj",
        "mtp",
        "re:(",
    ],
)
def test_an_entry_that_could_mean_the_layer(entry: str) -> None:
    assert matches(entry, spellings(NAME, 64))


@pytest.mark.parametrize(
    "entry", ["lm_head", "re:.*visual.*", "model.layers.0.self_attn.k_proj", "*shared_expert*", "layers.63", "mtp.fc"]
)
def test_an_entry_that_means_another(entry: str) -> None:
    assert not matches(entry, spellings(NAME, 64))


def test_experts_are_one_layer() -> None:
    assert "model.layers.61.mlp.experts" in spellings("model.layers.61.mlp.experts.7.up_proj", 61)


@pytest.mark.parametrize(
    ("block", "method"),
    [
        ({"quant_method": "compressed_tensors"}, "compressed-tensors"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "modelopt_fp4"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "modelopt_mixed"),
        ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}, "modelopt"),
        ({"quant_method": 5, "producer": []}, ""),
    ],
)
def test_the_method(block: dict[str, Any], method: str) -> None:
    assert method_name(block) == method


def test_the_form() -> None:
    packed = {"config_groups": {"a": {"targets": ["Linear"], "format": "nvfp4-pack-quantized"}}}
    assert form("compressed-tensors", packed) == (True, True)
    named = {"format": "float-quantized", "config_groups": {"a": {"targets": ["re:.*attn.*"]}}}
    assert form("compressed-tensors", named) == (False, False)
    assert form("quark", {"global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}) == (False, True)
    assert form("quark", {"global_quant_config": {"weight": {"dtype": "int4"}}}) == (True, True)
    for method in ("mxfp4", "quark"):
        with pytest.raises(MissingFact):
            form(method, {})


def test_only_keys_that_are_read_count() -> None:
    block = {"ignore": ["a", 5], "exclude": ["b"], "dynamic": {"-:c": {}, "+:d": {}}, "quantization": {"ignore": "e"}}
    assert dict(sparing(block, ("ignore", "dynamic"))) == {"ignore": ("a",), "dynamic": ("-:c",)}


def target(**dtypes: str) -> Target:
    tensors = {name: Tensor(dtype, (4, 4), "model.safetensors") for name, dtype in dtypes.items()}
    return Target("t", Config({"num_hidden_layers": 2}, "config.json"), tensors=tensors)


def test_layers_of_mtp_by_name_and_by_number() -> None:
    model = target(**{
        "model.layers.1.mlp.up_proj.weight": "BF16",
        "model.layers.2.mlp.up_proj.weight": "BF16",
        "model.layers.2.mlp.down_proj.weight": "U8",
        "model.layers.2.mlp.down_proj.weight_scale": "F8_E4M3",
        "mtp.fc.weight": "BF16",
        "mtp.layers.0.mlp.experts.gate_up_proj": "BF16",
    })  # fmt: skip
    found = mtp_tensors(model, model, "mtp")  # type: ignore[arg-type]
    assert found.plain == ("model.layers.2.mlp.up_proj", "mtp.fc", "mtp.layers.0.mlp.experts.gate_up_proj")
    assert found.quantised == ("model.layers.2.mlp.down_proj",)


def test_a_checkpoint_without_mtp() -> None:
    model = target(**{"model.layers.1.mlp.up_proj.weight": "BF16"})
    with pytest.raises(NotApplicable):
        mtp_tensors(model, model, "mtp")  # type: ignore[arg-type]
