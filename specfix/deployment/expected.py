"""What type each config key that specfix reads must have. Checked once, when a config is loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from specfix.deployment.config import TEXT_KEYS, Config, escape
from specfix.deployment.json_text import wrong_value

Test = Callable[[Any], bool]

# What a count, a length or a factor may be: far above any real one, and so that a product of two is still a number.
LIMIT = 2**40


def is_number(value: Any) -> bool:
    """A finite one, as a float can hold it."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_integer(value: Any) -> bool:
    """4096.0 is as good as 4096; true is not 1."""
    return is_number(value) and value == int(value)


def is_count(value: Any) -> bool:
    return is_integer(value) and 0 <= value <= LIMIT


def is_id(value: Any) -> bool:
    """A layer or token id: no float is one."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LIMIT


def list_of(test: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(test, value))


def is_string(value: Any) -> bool:
    return isinstance(value, str)


OBJECT: tuple[Test, str] = (lambda value: isinstance(value, dict), "an object")
STRING: tuple[Test, str] = (is_string, "a string")
STRINGS: tuple[Test, str] = (list_of(is_string), "a list of strings")
BOOLEAN: tuple[Test, str] = (lambda value: isinstance(value, bool), "true or false")
NUMBER: tuple[Test, str] = (is_number, "a number")
POSITIVE_NUMBER: tuple[Test, str] = (lambda value: is_number(value) and value > 0, "a positive number")
FACTOR: tuple[Test, str] = (lambda value: is_number(value) and 0 < value <= LIMIT, "a positive number up to 2^40")
POSITIVE: tuple[Test, str] = (lambda value: is_count(value) and value > 0, "a positive whole number up to 2^40")
POSITIVE_OR_AUTO: tuple[Test, str] = (
    lambda value: value == "auto" or (is_count(value) and value > 0),
    "a positive whole number up to 2^40, or auto",
)
COUNT: tuple[Test, str] = (is_count, "a whole number from 0 to 2^40")
COUNTS: tuple[Test, str] = (  # Ernie's vision models have two kinds of experts
    lambda value: is_count(value) or list_of(is_count)(value),
    "a whole number from 0 to 2^40, or a list of them",
)
ANYTHING: tuple[Test, str] = (lambda value: True, "anything")  # for what is only there or not
IDS: tuple[Test, str] = (list_of(is_id), "a list of whole numbers")
ID_OR_IDS: tuple[Test, str] = (lambda value: is_id(value) or IDS[0](value), "a token id or a list of them")
THETA: tuple[Test, str] = (  # Step-3.5 has one per layer
    lambda value: POSITIVE_NUMBER[0](value) or list_of(POSITIVE_NUMBER[0])(value),
    "a positive number",
)

AUX_IDS = (
    "eagle_aux_hidden_state_layer_ids",
    "target_layer_ids",
    "dspark_target_layer_ids",
    "aux_hidden_state_layer_ids",
)

KEYS: dict[str, tuple[Test, str]] = {
    **dict.fromkeys(("architectures", "layer_types"), STRINGS),
    **dict.fromkeys(("model_type", "speculators_model_type", "torch_dtype", "dtype"), STRING),
    **dict.fromkeys(
        (
            "max_position_embeddings",
            "n_positions",
            "max_seq_len",
            "seq_length",
            "model_max_length",
            "max_sequence_length",
            "max_seq_length",
            "seq_len",
            "max_target_positions",
            "original_max_position_embeddings",
            "hidden_size",
            "target_hidden_size",
            "vocab_size",
            "draft_vocab_size",
            "num_attention_heads",
            "num_key_value_heads",
            "head_dim",
        ),
        POSITIVE,
    ),
    **dict.fromkeys(
        (
            "num_hidden_layers",
            "num_target_layers",
            "num_nextn_predict_layers",
            "mtp_num_hidden_layers",
            "num_mtp_modules",
            "num_mtp_layers",
            "num_aux_hidden_states",
            "num_aux_layers",
            "canvas_length",
        ),
        COUNT,
    ),
    "sliding_window": COUNT,
    "intermediate_size": COUNTS,  # Gemma 3n has one for each layer
    **dict.fromkeys(("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts"), COUNTS),
    **dict.fromkeys(("bias", "dspark_block_size", "markov_rank", "medusa_num_heads", "method", "model"), ANYTHING),
    "hidden_act": ANYTHING,
    "block_configs": (lambda value: isinstance(value, list), "a list"),
    **dict.fromkeys(("block_size", "n_predict"), ANYTHING),
    **dict.fromkeys(("mtp_config", "speculators_config"), ANYTHING),  # read by few: each reader looks for itself
    **dict.fromkeys(("kv_lora_rank",), COUNT),
    **dict.fromkeys(
        (
            "mamba_d_head",
            "mamba_headdim",
            "mamba_n_heads",
            "n_mamba_heads",
            "mamba_n_groups",
            "mamba_ngroups",
            "mamba_d_state",
            "mamba_d_conv",
            "mamba_d_ssm",
            "mamba_expand",
            "mamba_chunk_size",
            "attention_head_dim",
        ),
        POSITIVE_OR_AUTO,
    ),
    "mamba_ssm_cache_dtype": ANYTHING,
    **dict.fromkeys(AUX_IDS, IDS),
    **dict.fromkeys(("eos_token_id", "bos_token_id", "pad_token_id"), ID_OR_IDS),
    **dict.fromkeys(("tie_word_embeddings", "use_sliding_window"), BOOLEAN),
    **dict.fromkeys(("rope_theta", "rotary_emb_base"), THETA),
    **dict.fromkeys(("rope_local_base_freq", "swa_rope_theta"), POSITIVE_NUMBER),
    **dict.fromkeys(("partial_rotary_factor", "rotary_pct", "rotary_emb_fraction"), NUMBER),
    **dict.fromkeys(
        (
            *TEXT_KEYS,
            "transformer_layer_config",
            "rope_scaling",
            "rope_parameters",
            "eagle_config",
            "dflash_config",
            "quantization_config",
            "compression_config",
            "auto_map",
        ),
        OBJECT,
    ),
}

ROPE_KEYS: dict[str, tuple[Test, str]] = {
    **dict.fromkeys(("rope_type", "type"), STRING),
    "factor": FACTOR,
    "rope_theta": THETA,
    "original_max_position_embeddings": POSITIVE,
    "mrope_section": IDS,
}

# objects within a config whose keys are looked at too
INNER: dict[str, dict[str, tuple[Test, str]]] = {
    "rope_scaling": ROPE_KEYS,
    "rope_parameters": ROPE_KEYS,
    **{key: {**dict.fromkeys(AUX_IDS, IDS), "layer_ids": ANYTHING} for key in ("eagle_config", "dflash_config")},
    "mtp_config": {"num_nextn_predict_layers": COUNT},
}


def check_types(config: Config) -> None:
    """Raise CannotCheck for the first value of another type than its key takes. null counts as absent."""
    for pointer, level in config.levels():
        check(config, pointer, level, KEYS)
        for key, expected in INNER.items():
            block = level.get(key)
            if not isinstance(block, dict):
                continue
            check(config, f"{pointer}/{key}", block, expected)
            if expected is ROPE_KEYS:
                for layer_type, nested in block.items():
                    if isinstance(nested, dict):
                        check(config, f"{pointer}/{key}/{escape(layer_type)}", nested, expected)


def check(config: Config, pointer: str, level: Mapping[str, Any], expected: Mapping[str, tuple[Test, str]]) -> None:
    """Raise CannotCheck for the first wrong value of one object."""
    for key, value in level.items():
        if value is None or key not in expected:
            continue
        test, words = expected[key]
        if not test(value):
            wrong_value(config.file, config.text, f"{pointer}/{key}", value, words)
