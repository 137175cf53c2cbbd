from __future__ import annotations

from typing import Any

import pytest

from specfix.deployment.kinds import draft_kind, named_kind

from .samples import LLAMA, config

NAMES = {
    "LlamaForCausalLMEagle3": "eagle3",
    "Eagle3LlamaForCausalLM": "eagle3",
    "CosyVoice3Eagle3LlamaForCausalLM": "eagle3",
    "PEagleDraftModel": "eagle3",
    "EagleLlamaForCausalLM": "eagle",
    "LlamaForCausalLMEagle": "eagle",
    "EagleDeepSeekMTPModel": "eagle",
    "DFlashDraftModel": "dflash",
    "DeepseekDFlashDraftModel": "dflash",
    "DFlash2DraftModel": "dflash",
    "MuseGlimmerAssistantModel": "dflash",
    "Qwen3DSparkModel": "dspark",
    "DSparkDraftModel": "dspark",
    "DeepSeekMTPModel": "mtp",
    "Qwen3NextMTP": "mtp",
    "Exaone4_5_MTP": "mtp",
    "DeepseekV3ForCausalLMNextN": "mtp",
    "MedusaModel": "medusa",
    "MLPSpeculatorPreTrainedModel": "mlp_speculator",
    "LlamaForCausalLM": None,
    "Eagle2_5_VLForConditionalGeneration": None,  # a vision model that is served
    "Step3p7FlashForCausalLM": None,
}


@pytest.mark.parametrize(("architecture", "kind"), NAMES.items())
def test_architecture(architecture: str, kind: str | None) -> None:
    assert named_kind(config({"architectures": [architecture], "model_type": "llama"})) == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"speculators_model_type": "eagle3"}, "eagle3"),
        ({"speculators_model_type": "peagle"}, "eagle3"),
        ({"speculators_model_type": "dflash2"}, "dflash"),
        ({"speculators_model_type": "novel"}, "novel"),
        ({"model_type": "eagle", "architectures": ["LlamaForCausalLM"]}, "eagle"),
        ({"model_type": "eagle", "method": "eagle3"}, "eagle3"),
        ({"model_type": "deepseek_mtp"}, "mtp"),
        ({"model_type": "gemma4_assistant"}, "mtp"),
        ({"model_type": "dflash"}, "dflash"),
        ({"model_type": "medusa"}, "medusa"),
        ({"medusa_num_heads": 2}, "medusa"),
        ({**LLAMA, "draft_vocab_size": 32000}, "eagle3"),
        ({**LLAMA, "draft_vocab_size": None}, "draft_model"),
        ({**LLAMA, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1]}}, "eagle3"),
        ({"model_type": "qwen3", "dflash_config": {}}, "dflash"),
        ({"model_type": "qwen3", "markov_rank": 256, "dflash_config": {}}, "dspark"),
        ({**LLAMA, "num_hidden_layers": 1, "bias": False}, "eagle"),
        ({**LLAMA, "num_hidden_layers": 1}, "draft_model"),
        ({**LLAMA, "num_nextn_predict_layers": 1}, "draft_model"),
        (LLAMA, "draft_model"),
    ],
)
def test_config(values: dict[str, Any], kind: str) -> None:
    assert draft_kind(config(values)) == kind


def test_tensors_tell_where_the_config_does_not() -> None:
    plain = config({**LLAMA, "num_hidden_layers": 1})
    assert draft_kind(plain, {"fc.weight": None, "layers.0.mlp.up_proj.weight": None}) == "eagle"
    assert draft_kind(plain, {"fc.weight": None, "d2t": None}) == "eagle3"
    assert draft_kind(plain, {"model.midlayer.mlp.up_proj.weight": None}) == "eagle3"
    assert draft_kind(plain, {"model.layers.0.mlp.up_proj.weight": None}) == "draft_model"
