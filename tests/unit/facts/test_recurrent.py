"""Targets with recurrent layers: the mode of their cache, and the size of their states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specfix.deployment import Serving, Target
from specfix.deployment.load import load_model
from specfix.engines import Engine
from specfix.engines.facts.recurrent import RecurrentFacts
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.recurrent import recurrent, recurrent_mode, state_pages

SmallEngine = Callable[..., Engine]
GRANITE = Path(__file__).parents[2] / "bases" / "granite-4.0-h-tiny"
NAME = "GraniteMoeHybridForCausalLM"


def engine_with(small_engine: SmallEngine, **facts: Any) -> Engine:
    having = {"is_hybrid": (NAME,), "is_attention_free": ()}
    return small_engine(
        methods={"architectures": {NAME: "granite:Granite"}},
        traits={"having": having, "unreadable": (), "expert_keys": None},
        blocks={"recurrent": RecurrentFacts(**facts)},
    )


@pytest.fixture
def target() -> Target:
    return load_model(str(GRANITE), "target")


@pytest.mark.parametrize(
    ("facts", "flags", "mode"),
    [
        ({"cached": False}, {}, "none"),
        ({"cached": True}, {"enable_prefix_caching": False}, "none"),
        ({"cached": True, "caching": "none", "cacheable": (NAME,)}, {}, "none"),
        ({"cached": True, "caching": "some", "cacheable": ()}, {}, "none"),
        ({"cached": True, "caching": "all", "cacheable": ()}, {}, "align"),
        ({"cached": True, "caching": "all", "cacheable": (NAME,), "cached_mode": "all"}, {}, "all"),
        (
            {"cached": True, "caching": "all", "cacheable": (NAME,), "cached_mode": "all"},
            {"mamba_cache_mode": "align"},
            "align",
        ),
        (
            {"cached": False, "caching": "all", "cacheable": (), "all_drafts": True},
            {"enable_prefix_caching": True, "mamba_cache_mode": "all"},
            "align",
        ),
    ],
)
def test_the_mode(
    facts: dict[str, Any], flags: dict[str, Any], mode: str, target: Target, small_engine: SmallEngine
) -> None:
    engine = engine_with(small_engine, **facts)
    assert recurrent(target, engine)
    assert recurrent_mode(target, Serving(flags=flags), engine, True) == mode


def test_a_mode_that_is_not_known(target: Target, small_engine: SmallEngine) -> None:
    with pytest.raises(MissingFact):
        recurrent_mode(target, Serving(), engine_with(small_engine), True)


def test_no_recurrent_layers(target: Target, small_engine: SmallEngine) -> None:
    with pytest.raises(NotApplicable):
        recurrent_mode(target, Serving(), engine_with(small_engine), False)


def test_a_class_that_the_release_does_not_know(target: Target, small_engine: SmallEngine) -> None:
    with pytest.raises(MissingFact):
        recurrent(target, small_engine())


@pytest.mark.parametrize(
    ("mode", "tensor_parallel", "expected"),
    [
        ("none", 1, (819_200, 806_400, 6_656)),  # 400 tokens of 2,048 bytes
        ("align", 1, (819_200, 806_400, 6_656)),
        ("all", 1, (1_048_576, 806_400, 6_656)),  # 512 tokens: a multiple of 256
        ("none", 2, (409_600, 403_968, 3_584)),  # one more group, so that each rank has one
    ],
)
def test_pages(mode: str, tensor_parallel: int, expected: tuple[int, int, int], target: Target) -> None:
    assert state_pages(target, Serving(tensor_parallel_size=tensor_parallel), mode) == expected


@pytest.mark.parametrize(
    "serving",
    [Serving(kv_cache_dtype="fp8"), Serving(block_size=64), Serving(flags={"mamba_block_size": 8})],
)
def test_sizes_that_hang_on_more(serving: Serving, target: Target) -> None:
    with pytest.raises(MissingFact):
        state_pages(target, serving, "none")
