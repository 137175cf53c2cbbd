from __future__ import annotations

import pytest

from specfix.deployment import Location
from specfix.deployment.expected import as_read, check_types, wrong_values
from specfix.errors import CannotCheck

from .samples import SPECULATORS, config

OMNI = config(
    {
        "hidden_size": 1,
        "vocab_size": 5,
        "thinker_config": {"hidden_size": 2, "text_config": {"hidden_size": 3, "vocab_size": None}},
    }
)


def test_find_prefers_the_innermost_level_and_takes_null_for_absent() -> None:
    assert OMNI.find("hidden_size") == ("/thinker_config/text_config/hidden_size", 3)
    assert OMNI.find("vocab_size") == ("/vocab_size", 5)
    assert OMNI.find("absent", "hidden_size") == ("/thinker_config/text_config/hidden_size", 3)
    assert OMNI.find("absent") is None


def test_a_level_counts_more_than_the_order_of_keys() -> None:
    nested = config({"n_positions": 1, "text_config": {"max_position_embeddings": 2}})
    assert nested.find("n_positions", "max_position_embeddings") == (
        "/text_config/max_position_embeddings",
        2,
    )


def test_speculators_keep_the_layer_in_a_config_of_its_own() -> None:
    draft = config(SPECULATORS)
    assert draft.find("max_position_embeddings") == (
        "/transformer_layer_config/max_position_embeddings",
        4096,
    )
    assert draft.find("draft_vocab_size") == ("/draft_vocab_size", 32000)
    assert draft.value("model_type") == "llama"


def test_the_layer_config_of_any_other_model_is_no_level() -> None:
    assert config({"transformer_layer_config": {"hidden_size": 1}}).find("hidden_size") is None


def test_vllm_eagle_format_falls_back_to_its_model() -> None:
    draft = config({"model_type": "eagle", "vocab_size": 1, "model": {"vocab_size": 2, "hidden_size": 3}})
    assert draft.find("vocab_size") == ("/vocab_size", 1)
    assert draft.find("hidden_size") == ("/model/hidden_size", 3)


def test_at_knows_the_line() -> None:
    pointer = "/thinker_config/text_config/hidden_size"
    assert (OMNI.at(pointer), OMNI.at(pointer).line) == (Location("config.json", pointer), 7)
    assert (OMNI.at("/absent"), OMNI.at("/absent").line) == (Location("config.json", "/absent"), None)


WRONG = [
    ({"max_position_embeddings": "4096"}, '/max_position_embeddings is "4096", not a positive whole number'),
    ({"max_position_embeddings": 0}, "/max_position_embeddings is 0, not"),
    ({"max_position_embeddings": -1}, "/max_position_embeddings is -1, not"),
    ({"max_position_embeddings": True}, "/max_position_embeddings is true, not"),
    ({"max_position_embeddings": 4096.5}, "/max_position_embeddings is 4096.5, not"),
    ({"max_position_embeddings": float("inf")}, "/max_position_embeddings is Infinity, not"),
    ({"max_position_embeddings": float("nan")}, "/max_position_embeddings is NaN, not"),
    ({"max_position_embeddings": [1] * 99}, "/max_position_embeddings is [1, 1,"),
    ({"num_hidden_layers": -1}, "/num_hidden_layers is -1, not a whole number from 0 to 2^40"),
    ({"architectures": "LlamaForCausalLM"}, '/architectures is "LlamaForCausalLM", not a list of strings'),
    ({"architectures": [1]}, "/architectures is [1], not a list of strings"),
    ({"model_type": 7}, "/model_type is 7, not a string"),
    ({"tie_word_embeddings": "no"}, '/tie_word_embeddings is "no", not true or false'),
    ({"eos_token_id": [1, "2"]}, '/eos_token_id is [1, "2"], not a token id or a list of them'),
    ({"text_config": []}, "/text_config is [], not an object"),
    ({"text_config": {"vocab_size": {}}}, "/text_config/vocab_size is {}, not"),
    ({"rope_theta": 0}, "/rope_theta is 0, not a positive number"),
    ({"rope_scaling": "yarn"}, '/rope_scaling is "yarn", not an object'),
    ({"rope_scaling": {"type": 1}}, "/rope_scaling/type is 1, not a string"),
    ({"rope_scaling": {"factor": "8"}}, '/rope_scaling/factor is "8", not a positive number'),
    ({"rope_parameters": {"full_attention": {"factor": -1}}}, "/rope_parameters/full_attention/factor is -1"),
    ({"rope_parameters": {"rope_theta": {}}}, "/rope_parameters/rope_theta is {}, not"),
    ({"rope_scaling": {"mrope_section": [1.5]}}, "/rope_scaling/mrope_section is [1.5], not"),
    ({"target_layer_ids": {"0": 1}}, '/target_layer_ids is {"0": 1}, not a list of whole numbers'),
    ({"eagle_aux_hidden_state_layer_ids": [1.5]}, "/eagle_aux_hidden_state_layer_ids is [1.5], not"),
    ({"dflash_config": {"target_layer_ids": 5}}, "/dflash_config/target_layer_ids is 5, not"),
    ({"eagle_config": [1]}, "/eagle_config is [1], not an object"),
    ({"eagle_config": {"target_layer_ids": "1"}}, '/eagle_config/target_layer_ids is "1", not'),
    ({"layer_types": 5}, "/layer_types is 5, not a list of strings"),
    ({"layer_types": [{}]}, "/layer_types is [{}], not a list of strings"),
    ({"num_aux_hidden_states": "three"}, '/num_aux_hidden_states is "three", not a whole number'),
    ({"num_experts": ["8"]}, '/num_experts is ["8"], not a whole number up to 2^40, or a list of them'),
    ({"max_position_embeddings": 2**40 + 1}, "/max_position_embeddings is 1099511627777, not"),
    ({"vocab_size": 10**399}, "/vocab_size is 1000"),
    ({"rope_theta": 10**399}, "/rope_theta is 1000"),
    ({"rope_scaling": {"factor": 1e308}}, "/rope_scaling/factor is 1e+308, not a positive number up to 2^40"),
    ({"target_layer_ids": [10**399]}, "/target_layer_ids is [1000"),
    ({"mtp_config": {"num_nextn_predict_layers": "1"}}, '/mtp_config/num_nextn_predict_layers is "1", not'),
    ({"speculators_model_type": {}, "speculators_config": {}}, "/speculators_model_type is {}, not a string"),
    ({"dtype": "many"}, '/dtype is "many", not the name of a type of numbers'),
    ({"seq_length": "long"}, '/seq_length is "long", not a whole number up to 2^40'),
    ({"rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 0}}, "is 0, not a positive"),
    (
        {"speculators_model_type": "eagle3", "transformer_layer_config": {"vocab_size": 1.5}},
        "/transformer_layer_config/vocab_size is 1.5, not",
    ),
]


@pytest.mark.parametrize(("values", "message"), WRONG, ids=[message[:50] for _, message in WRONG])
def test_a_value_of_another_type_is_refused_with_its_line(values: dict[str, object], message: str) -> None:
    with pytest.raises(CannotCheck) as refused:
        check_types(config(values))
        for method in ("eagle3", "dspark", "deepseek_mtp"):
            as_read(config(values), method)
    assert message in str(refused.value)
    assert str(refused.value).startswith("config.json, line ")


@pytest.mark.parametrize(
    "values",
    [
        {"max_position_embeddings": 4096.0},
        {
            "max_position_embeddings": None,
            "rope_scaling": None,
            "eagle_config": None,
            "draft_vocab_size": None,
        },
        {"rope_theta": [5000000.0, 10000.0]},
        {"eos_token_id": [1, 2], "bos_token_id": None, "pad_token_id": -1},
        {"rope_scaling": {"factor": None, "mrope_section": [16, 24, 24]}},
        {"rope_parameters": {}},
        {"moe_num_experts": [64, 64], "num_experts": 8, "bias": False, "block_configs": [{}], "method": 3},
        {"time_step_limit": [0.0, float("inf")], "intermediate_size": [1, 2]},
        {"vision_config": {"hidden_size": "large"}},
        {"torch_dtype": "torch.bfloat16", "dtype": "float8_e4m3fn", "rope_scaling": [], "seq_length": -1},
    ],
)
def test_what_real_configs_hold_passes(values: dict[str, object]) -> None:
    check_types(config(values))
    assert as_read(config(values), "eagle3") == (config(values), [])


@pytest.mark.parametrize(
    ("values", "method", "pointer"),
    [
        ({"dspark_target_layer_ids": 3}, "eagle3", "/dspark_target_layer_ids"),
        ({"draft_vocab_size": "many"}, "draft_model", "/draft_vocab_size"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": 4, "x": 1}}, "eagle", "/eagle_config/eagle_aux"),
        ({"num_nextn_predict_layers": -1, "attention_head_dim": 0}, "eagle3", "/num_nextn_predict_layers"),
        ({"transformer_layer_config": 7, "rotary_emb_base": "x"}, "eagle3", "/transformer_layer_config"),
        (
            {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "original_max_position_embeddings": -1}},
            "eagle3",
            "/rope_scaling/original_max_position_embeddings",
        ),
    ],
)
def test_a_wrong_value_that_nobody_reads_is_told_and_counts_as_null(
    values: dict[str, object], method: str, pointer: str
) -> None:
    before = config(values)
    check_types(before)
    read, told = as_read(before, method)
    assert told[0].startswith(f"config.json: {pointer}")
    assert len(told) == len(list(wrong_values(before))) and not list(wrong_values(read))
    assert before == config(values) and read.text == before.text
    assert read.values.keys() == before.values.keys()
