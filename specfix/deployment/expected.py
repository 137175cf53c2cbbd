"""What type each config key that specfix reads must have. Checked once, when a config is loaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from specfix.deployment.config import TEXT_KEYS, Config, escape
from specfix.deployment.json_text import show, wrong_value

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


# how torch calls its types of numbers, those to come among them
TYPE_NAME = re.compile(
    r"(torch\.)?(b?float\d*(_e\d\w*)?|half|double|u?int\d*|short|long|bool|c?complex\d*|c(half|double|float))"
)

OBJECT: tuple[Test, str] = (lambda value: isinstance(value, dict), "an object")
STRING: tuple[Test, str] = (is_string, "a string")
DTYPE: tuple[Test, str] = (  # Transformers asks torch for it by name
    lambda value: is_string(value) and TYPE_NAME.fullmatch(value) is not None,
    "the name of a type of numbers",
)
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
INTEGER: tuple[Test, str] = (lambda value: is_integer(value) and abs(value) <= LIMIT, "a whole number up to 2^40")
COUNT: tuple[Test, str] = (is_count, "a whole number from 0 to 2^40")
COUNTS: tuple[Test, str] = (  # Ernie's vision models have two kinds of experts
    lambda value: is_count(value) or list_of(is_count)(value),
    "a whole number from 0 to 2^40, or a list of them",
)
EXPERTS: tuple[Test, str] = (  # below 0 is none
    lambda value: INTEGER[0](value) or list_of(is_count)(value),
    "a whole number up to 2^40, or a list of them",
)
ANYTHING: tuple[Test, str] = (lambda value: True, "anything")  # for what is only there or not
IDS: tuple[Test, str] = (list_of(is_id), "a list of whole numbers")
LAYERS: tuple[Test, str] = (  # 3.0 is as good as 3
    list_of(lambda value: is_integer(value) and abs(value) <= LIMIT),
    "a list of whole numbers",
)
LAYERS_OR_TEXT: tuple[Test, str] = (  # the engine passes over a text
    lambda value: isinstance(value, str) or LAYERS[0](value),
    LAYERS[1],
)
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
    **dict.fromkeys(("model_type", "speculators_model_type"), STRING),
    "dtype": DTYPE,
    "torch_dtype": (lambda value: not isinstance(value, str) or DTYPE[0](value), DTYPE[1]),
    **dict.fromkeys(
        (
            "max_position_embeddings",
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
        ),
        COUNT,
    ),
    "canvas_length": INTEGER,  # the engine asks for no more than whether there is one
    **dict.fromkeys(  # other names of a length: the least of them counts, whatever it is
        (
            "n_positions",
            "max_seq_len",
            "seq_length",
            "model_max_length",
            "max_sequence_length",
            "max_seq_length",
            "seq_len",
            "max_target_positions",
        ),
        INTEGER,
    ),
    "sliding_window": COUNT,
    "intermediate_size": COUNTS,  # Gemma 3n has one for each layer
    **dict.fromkeys(("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts"), EXPERTS),
    **dict.fromkeys(("bias", "dspark_block_size", "markov_rank", "medusa_num_heads", "method", "model"), ANYTHING),
    **dict.fromkeys(("hidden_act", "logit_scale", "dual_chunk_attention_config"), ANYTHING),
    "block_configs": (lambda value: isinstance(value, list | str) or not value, "a list"),
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
    **dict.fromkeys(("mamba_ssm_cache_dtype", "engram_layer_ids", "ple_layer_ids"), ANYTHING),
    **dict.fromkeys(AUX_IDS, LAYERS),
    "eagle_aux_hidden_state_layer_ids": LAYERS_OR_TEXT,
    **dict.fromkeys(("eos_token_id", "bos_token_id", "pad_token_id"), ID_OR_IDS),
    **dict.fromkeys(("tie_word_embeddings", "use_sliding_window"), BOOLEAN),
    **dict.fromkeys(("rope_theta", "rotary_emb_base"), THETA),
    **dict.fromkeys(("rope_local_base_freq", "swa_rope_theta"), POSITIVE_NUMBER),
    **dict.fromkeys(("partial_rotary_factor", "rotary_pct", "rotary_emb_fraction"), NUMBER),
    **dict.fromkeys(
        (
            *TEXT_KEYS,
            "transformer_layer_config",
            "rope_parameters",
            "eagle_config",
            "dflash_config",
            "quantization_config",
            "compression_config",
        ),
        OBJECT,
    ),
    "rope_scaling": (lambda value: isinstance(value, dict) or not value, "an object"),  # an empty one is none
    "auto_map": (lambda value: isinstance(value, dict | list | str), "an object"),  # classes are looked for in it
}

ROPE_KEYS: dict[str, tuple[Test, str]] = {
    **dict.fromkeys(("rope_type", "type"), STRING),
    "factor": FACTOR,
    "rope_theta": THETA,
    "original_max_position_embeddings": POSITIVE,
    "mrope_section": IDS,
    "partial_rotary_factor": NUMBER,
}

# objects within a config whose keys are looked at too
INNER: dict[str, dict[str, tuple[Test, str]]] = {
    "rope_scaling": ROPE_KEYS,
    "rope_parameters": ROPE_KEYS,
    **{key: {**dict.fromkeys(AUX_IDS, LAYERS), "layer_ids": ANYTHING} for key in ("eagle_config", "dflash_config")},
    "mtp_config": {"num_nextn_predict_layers": COUNT},
}


# Keys that few deployments read: only drafts by these methods, or only models of other classes than most.
NOBODY: frozenset[str] = frozenset()
ROPE_BLOCKS = frozenset({"rope_scaling", "rope_parameters"})
UNSCALED = frozenset({"default", "linear"})  # types of RoPE that know no length before the scaling
SPECULATORS_KEYS = ("speculators_model_type", "transformer_layer_config")
HEADS = frozenset({"eagle3", "dflash", "dspark"})
READ_BY: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            "draft_vocab_size",
            "target_hidden_size",
            "num_aux_hidden_states",
            "num_aux_layers",
            "eagle_config",
            "eagle_aux_hidden_state_layer_ids",
        ),
        HEADS,
    ),
    **dict.fromkeys(
        ("dflash_config", "target_layer_ids", "dspark_target_layer_ids", "num_target_layers"),
        frozenset({"dflash", "dspark"}),
    ),
    **dict.fromkeys(
        ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers"), frozenset({"mtp"})
    ),
    **dict.fromkeys(
        (
            "attention_head_dim",
            "aux_hidden_state_layer_ids",
            "canvas_length",
            "kv_lora_rank",
            "rope_local_base_freq",
            "rotary_emb_base",
            "swa_rope_theta",
            "use_sliding_window",
            *(key for key in KEYS if key.startswith(("mamba_", "n_mamba_"))),
        ),
        NOBODY,
    ),
}


Wrong = tuple[str, Any, str]


def check_types(config: Config) -> None:
    """Raise CannotCheck for the first value of another type than its key takes, of the keys that every deployment
    reads. null counts as absent."""
    for pointer, value, words in wrong_values(config):
        if readers_of(config, pointer) is None:
            wrong_value(config.file, config.text, pointer, value, words)


def as_read(config: Config, method: str) -> tuple[Config, list[str]]:
    """``config`` as a deployment of this method reads it: without wrong values of keys that it never looks at, and with
    words for each of them. Raises CannotCheck for any other wrong value."""
    told = []
    for pointer, value, words in list(wrong_values(config)):
        readers = readers_of(config, pointer)
        if readers is None or method in readers or ("mtp" in readers and method.endswith("_mtp")):
            wrong_value(config.file, config.text, pointer, value, words)
        config = replace(config, values=without(config.values, pointer.split("/")[1:]))
        told.append(f"{config.file}: {pointer} is {show(value)}, not {words}, and counts as absent")
    return config, told


def readers_of(config: Config, pointer: str) -> frozenset[str] | None:
    """The methods that read what stands there; None for all."""
    block: Mapping[str, Any] = config.values
    parts = pointer.split("/")[1:]
    for part in parts[:-1]:
        block = block[unescaped(block, part)]
    if parts[-1] in SPECULATORS_KEYS and not config.is_speculators:
        return NOBODY
    if parts[-1] == "original_max_position_embeddings" and ROPE_BLOCKS & set(parts):
        return NOBODY if block.get("rope_type", block.get("type", "default")) in UNSCALED else None
    return next((READ_BY[part] for part in reversed(parts) if part in READ_BY), None)


def without(values: Mapping[str, Any], path: list[str]) -> dict[str, Any]:
    """``values`` with null at ``path``, parts of a JSON pointer."""
    key = unescaped(values, path[0])
    return {**values, key: without(values[key], path[1:]) if path[1:] else None}


def unescaped(values: Mapping[str, Any], part: str) -> str:
    """The key that a part of a JSON pointer stands for."""
    return next(key for key in values if escape(key) == part)


def wrong_values(config: Config) -> Iterator[Wrong]:
    """(pointer, value, what it should be) of each value of another type than its key takes."""
    for pointer, level in config.levels:
        yield from wrong_of(pointer, level, KEYS)
        for key, expected in INNER.items():
            block = level.get(key)
            if not isinstance(block, dict):
                continue
            yield from wrong_of(f"{pointer}/{key}", block, expected)
            if expected is ROPE_KEYS:
                for layer_type, nested in block.items():
                    if isinstance(nested, dict):
                        yield from wrong_of(f"{pointer}/{key}/{escape(layer_type)}", nested, expected)


def wrong_of(pointer: str, level: Mapping[str, Any], expected: Mapping[str, tuple[Test, str]]) -> Iterator[Wrong]:
    """Those of one object."""
    for key, value in level.items():
        if value is not None and key in expected and not expected[key][0](value):
            yield f"{pointer}/{key}", value, expected[key][1]
