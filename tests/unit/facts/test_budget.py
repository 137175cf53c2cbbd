"""Limits of a batch, draft tokens, and the graphs that are captured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specfix.deployment import Hardware, Serving
from specfix.deployment.presets import PRESETS
from specfix.engines import Engine
from specfix.engines.facts.numbers import Captures
from specfix.engines.find import find_engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.budget import Batch, batches, draft_tokens, size, whole
from specfix.facts.graphs import Captured, captured, of_batch, stepped

OLD = Captures("2", 512, 512, wide=False, rounded=False)
NEW = Captures("2*(k+1)", 512, 1024, wide=True, rounded=True)
H200, SPARK, B200 = PRESETS["h200"], PRESETS["dgx-spark"], PRESETS["b200"]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return find_engine("vllm==0.26.0")


def limits(engine: Engine, hardware: Hardware | None, **options: Any) -> tuple[Batch, ...]:
    flags = options.pop("flags", {})
    return batches(Serving(flags=flags, **options), engine, hardware, served_length=8192)


def test_given_limits_need_no_hardware(engine: Engine) -> None:
    assert limits(engine, None, max_num_seqs=4, flags={"max_num_batched_tokens": 64}) == (Batch(64, 4),)


def test_defaults_by_hardware(engine: Engine) -> None:
    assert limits(engine, H200) == (Batch(8192, 1024),)
    assert limits(engine, PRESETS["l4"]) == (Batch(2048, 256),)


def test_both_defaults_where_memory_is_not_told(engine: Engine) -> None:
    assert limits(engine, SPARK) == (Batch(2048, 256), Batch(8192, 1024))
    assert limits(engine, replace(H200, memory_gib=None)) == (Batch(2048, 256), Batch(8192, 1024))


def test_what_is_given_counts_beside_defaults(engine: Engine) -> None:
    assert limits(engine, H200, max_num_seqs=2000) == (Batch(8192, 2000),)
    assert limits(engine, H200, flags={"max_num_batched_tokens": 16}) == (Batch(16, 16),)
    assert limits(engine, H200, flags={"performance_mode": "throughput"}) == (Batch(16384, 2048),)
    assert batches(Serving(), engine, H200, served_length=4) == (Batch(4096, 1024),)


def test_a_cpu_has_more_for_more_workers(engine: Engine) -> None:
    (one,), (two,) = limits(engine, PRESETS["cpu"]), limits(engine, PRESETS["cpu"], tensor_parallel_size=2)
    assert two == Batch(2 * one.tokens, 2 * one.seqs)


def test_limits_that_cannot_be_told(engine: Engine) -> None:
    for options in (
        {"hardware": None},
        {"hardware": H200, "flags": {"max_num_batched_tokens": "8k"}},
        {"hardware": H200, "flags": {"data_parallel_size": 2, "enable_expert_parallel": True}},
    ):
        with pytest.raises(MissingFact):
            limits(engine, **options)
    with pytest.raises(MissingFact, match="the length"):
        batches(Serving(), engine, H200)


def test_flags_that_are_whole_numbers() -> None:
    serving = Serving(flags={"data_parallel_size": True}, unknown={"max_num_batched_tokens": "$TOKENS"})
    assert size(Serving(), "data_parallel_size") == 1
    for name in ("data_parallel_size", "max_num_batched_tokens"):
        with pytest.raises(MissingFact):
            whole(serving, name)


def test_draft_tokens(engine: Engine) -> None:
    assert draft_tokens(Serving(num_speculative_tokens=5), "eagle3", engine) == 5
    assert draft_tokens(Serving(), "suffix", engine) == 24
    with pytest.raises(MissingFact):
        draft_tokens(Serving(), "eagle3", engine)


def test_sizes_in_steps() -> None:
    assert stepped(20, wide=True) == (1, 2, 4, 8, 16)
    assert stepped(280, wide=True)[-3:] == (248, 256, 272)
    assert stepped(280, wide=False)[-1] == 280


@pytest.mark.parametrize(
    ("seqs", "given", "facts", "query", "expected"),
    [
        (6, {"max_cudagraph_capture_size": 42}, NEW, 7, Captured(40, 35, "max_cudagraph_capture_size", False)),
        (6, {}, NEW, 7, Captured(80, 77, None, False)),
        (32, {}, NEW, 17, Captured(512, 510, None, True)),
        (16, {}, OLD, 4, Captured(32, 32, None, False)),
        (16, {"cudagraph_capture_sizes": [8, 64]}, NEW, 4, Captured(64, 64, "cudagraph_capture_sizes", False)),
        (16, {"cuda_graph_sizes": [100]}, OLD, 4, Captured(96, 96, "cuda_graph_sizes", False)),
    ],
)
def test_captured_sizes(seqs: int, given: dict[str, Any], facts: Captures, query: int, expected: Captured) -> None:
    found = of_batch(Batch(8192, seqs), given, facts, H200, query)
    assert (found.largest, found.chosen, found.bounded) == (expected.largest, expected.chosen, expected.bounded)
    assert found.rounded == expected.rounded or facts is OLD


def test_a_higher_ceiling_on_newer_devices() -> None:
    assert of_batch(Batch(8192, 512), {}, NEW, B200, 4).largest == 1024


@pytest.mark.parametrize(
    "serving",
    [
        Serving(enforce_eager=True),
        Serving(flags={"compilation_config": {"cudagraph_mode": "NONE"}}),
        Serving(flags={"compilation_config": {"mode": 0}}),
        Serving(flags={"optimization_level": 0}),
    ],
)
def test_nothing_is_captured(serving: Serving, engine: Engine) -> None:
    with pytest.raises(NotApplicable):
        captured(serving, H200, engine, (Batch(8192, 4),), 3)
    with pytest.raises(NotApplicable):
        captured(Serving(), PRESETS["cpu"], engine, (Batch(8192, 4),), 3)


def test_sizes_of_another_type_are_no_guess(engine: Engine) -> None:
    for flags in ({"cudagraph_capture_sizes": "1,2"}, {"max_cudagraph_capture_size": "x"}):
        with pytest.raises(MissingFact):
            captured(Serving(flags=flags), H200, engine, (Batch(8192, 4),), 3)
