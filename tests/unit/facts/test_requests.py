"""Sampling parameters that requests have by default."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specfix.deployment import Serving, Target
from specfix.deployment.load import load_model
from specfix.engines import Engine
from specfix.engines.facts.requests import RequestFacts
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.requests import default_sampling, neutral

SmallEngine = Callable[..., Engine]
FACTS = {"speculative": {"requests": RequestFacts(defaults=("repetition_penalty", "min_p"))}}


@pytest.fixture
def target(tmp_path: Path) -> Target:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["SomeForCausalLM"]}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"min_p": 0.1, "top_k": 20, "repetition_penalty": 1.1}))
    return load_model(str(tmp_path), "target")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, {"repetition_penalty": 1.1, "min_p": 0.1}),
        ({"generation_config": "auto"}, {"repetition_penalty": 1.1, "min_p": 0.1}),
        ({"override_generation_config": {"min_p": 0.0}}, {"repetition_penalty": 1.1, "min_p": 0.0}),
        ({"override_generation_config": '{"min_p": 0.2}'}, {"repetition_penalty": 1.1, "min_p": 0.2}),
        ({"override_generation_config": "no JSON"}, {"repetition_penalty": 1.1, "min_p": 0.1}),
        ({"generation_config": "vllm", "override_generation_config": {"min_p": 0.2}}, {"min_p": 0.2}),
    ],
)
def test_defaults(flags: dict[str, Any], expected: dict[str, float], target: Target, small_engine: SmallEngine) -> None:
    found = default_sampling(target, Serving(flags=flags), small_engine(**FACTS))
    assert {name: value for name, value, _ in found} == expected


def test_the_engine_s_own_defaults(target: Target, small_engine: SmallEngine) -> None:
    with pytest.raises(NotApplicable):
        list(default_sampling(target, Serving(flags={"generation_config": "vllm"}), small_engine(**FACTS)))


def test_another_folder(target: Target, small_engine: SmallEngine) -> None:
    with pytest.raises(MissingFact):
        list(default_sampling(target, Serving(flags={"generation_config": "/other"}), small_engine(**FACTS)))


@pytest.mark.parametrize(
    ("name", "value", "nothing"),
    [
        ("min_p", 0, True),
        ("min_p", 0.000001, True),
        ("min_p", 0.05, False),
        ("repetition_penalty", 1.0, True),
        ("repetition_penalty", 1.05, False),
        ("min_p", "0.1", True),
        ("min_p", True, True),
    ],
)
def test_values_that_do_nothing(name: str, value: Any, nothing: bool) -> None:
    assert neutral(name, value) is nothing


@pytest.mark.parametrize("value", [10**399, -(10**399), float("inf"), float("nan")])
def test_a_number_that_no_float_holds_is_not_neutral(value: float) -> None:
    assert not neutral("min_p", value)
