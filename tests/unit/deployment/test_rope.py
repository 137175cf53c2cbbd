"""Each form in which configs state RoPE, and what vLLM makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from specfix.deployment.rope import Rope, ropes

from .samples import config

YARN = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "mscale": 1.0}

# config, and (rope_type, theta, factor, original length, pointer, layer_type) of each embedding
FORMS: list[tuple[dict[str, Any], list[tuple[Any, ...]]]] = [
    ({}, [("default", None, None, None, "", None)]),
    ({"rope_theta": 500000, "rope_scaling": None}, [("default", 500000.0, None, None, "", None)]),
    ({"rotary_emb_base": 10000}, [("default", 10000.0, None, None, "", None)]),
    ({"rope_theta": [1e6, 1e4]}, [("default", None, None, None, "", None)]),
    ({"rope_scaling": {}, "rope_parameters": None}, [("default", None, None, None, "", None)]),
    ({"rope_scaling": {"factor": 2.0}}, [("default", None, 2.0, None, "/rope_scaling", None)]),
    ({"rope_scaling": YARN, "rope_theta": 10000}, [("yarn", 10000.0, 40.0, 4096, "/rope_scaling", None)]),
    (
        {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192.0}},
        [("llama3", None, 8.0, 8192, "/rope_scaling", None)],
    ),
    (
        {"rope_scaling": {"rope_type": "yarn", "type": "linear", "factor": None}},
        [("yarn", None, None, None, "/rope_scaling", None)],
    ),
    (
        {"rope_scaling": {"type": "su", "short_factor": [1]}},
        [("longrope", None, None, None, "/rope_scaling", None)],
    ),
    (
        {"rope_scaling": {"type": "longrope"}, "original_max_position_embeddings": 4096},
        [("longrope", None, None, 4096, "/rope_scaling", None)],
    ),
    (
        {"rope_scaling": {"type": "dynamic", "factor": 2}, "original_max_position_embeddings": 4096},
        [("dynamic", None, 2.0, None, "/rope_scaling", None)],
    ),
    (
        {"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}},
        [("default", None, None, None, "/rope_scaling", None)],
    ),
    (
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "rope_theta": 1e4},
        [("default", 1e6, None, None, "/rope_parameters", None)],
    ),
    (
        {"rope_parameters": {"rope_type": "linear", "factor": 4, "rope_theta": None}, "rope_theta": 1e4},
        [("linear", 1e4, 4.0, None, "/rope_parameters", None)],
    ),
    (
        {"rope_parameters": {"rope_type": "default"}, "rope_scaling": {"type": "linear", "factor": 2}},
        [("linear", None, 2.0, None, "/rope_scaling", None)],
    ),
    (
        {
            "rope_parameters": {
                "full_attention": {"rope_type": "proportional", "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default"},
                "chunked_attention": None,
                "original_max_position_embeddings": 8192,
            },
            "rope_theta": 1e4,
        },
        [
            ("proportional", 1e6, None, None, "/rope_parameters/full_attention", "full_attention"),
            ("default", 1e4, None, None, "/rope_parameters/sliding_attention", "sliding_attention"),
        ],
    ),
    (
        {
            "text_config": {
                "rope_theta": 1e6,
                "rope_local_base_freq": 1e4,
                "rope_scaling": {"rope_type": "linear", "factor": 8.0},
            }
        },
        [
            ("linear", 1e6, 8.0, None, "/text_config/rope_scaling", "full_attention"),
            ("default", 1e4, None, None, "/text_config/rope_local_base_freq", "sliding_attention"),
        ],
    ),
    (
        {
            "speculators_model_type": "eagle3",
            "transformer_layer_config": {"rope_scaling": YARN, "rope_theta": 1e4},
        },
        [("yarn", 1e4, 40.0, 4096, "/transformer_layer_config/rope_scaling", None)],
    ),
]


@pytest.mark.parametrize(("values", "expected"), FORMS)
def test_form(values: dict[str, Any], expected: list[tuple[Any, ...]]) -> None:
    def row(rope: Rope) -> tuple[Any, ...]:
        original = rope.original_max_position_embeddings
        return (rope.rope_type, rope.theta, rope.factor, original, rope.pointer, rope.layer_type)

    assert [row(rope) for rope in ropes(config(values))] == expected


def test_parameters_are_the_block_as_the_engine_holds_it() -> None:
    (rope,) = ropes(
        config(
            {
                "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24], "factor": None},
                "rope_theta": 1e6,
                "rotary_pct": 0.5,
            }
        )
    )
    assert rope.parameters == {
        "type": "mrope",
        "rope_type": "default",
        "mrope_section": [16, 24, 24],
        "rope_theta": 1e6,
        "partial_rotary_factor": 0.5,
    }


def test_telechat_is_yarn_with_its_own_attention_factor() -> None:
    (rope,) = ropes(config({"rope_scaling": {"type": "telechat3-yarn", "factor": 1.0}}))
    assert (rope.rope_type, rope.parameters["attention_factor"]) == ("yarn", 1.0)
