"""Attention backends for targets and drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.engines.facts.backends import Backend, DraftAttention
from specfix.errors import MissingFact
from specfix.facts.attention import asked_backend, own_backend, refusals

SmallEngine = Callable[..., Engine]
HOPPER: dict[str, Any] = {"capability": [9, 0], "capability.major": 9, "head_size": 128}


def engine_with(small_engine: SmallEngine, **facts: Any) -> Engine:
    return small_engine(backends={"backends": {"SOME": Backend("a.b.C", **facts)}})


@pytest.mark.parametrize(
    ("serving", "variable", "name"),
    [
        (Serving(attention_backend="flashinfer"), False, "FLASHINFER"),
        (Serving(flags={"attention_config": {"backend": "TRITON_MLA"}}), False, "TRITON_MLA"),
        (Serving(flags={"attention_config": "text"}), False, None),
        (Serving(env={"VLLM_ATTENTION_BACKEND": "FLASH_ATTN"}), True, "FLASH_ATTN"),
        (Serving(env={"VLLM_ATTENTION_BACKEND": "FLASH_ATTN"}), False, None),
        (Serving(attention_backend="auto"), False, None),
        (Serving(), True, None),
    ],
)
def test_which_backend_is_asked_for(
    serving: Serving, variable: bool, name: str | None, small_engine: SmallEngine
) -> None:
    assert asked_backend(serving, small_engine(serve={"backend_variable": variable})) == name


@pytest.mark.parametrize(
    ("facts", "mla", "fields"),
    [
        ({"capability": [">=", ["name", "capability"], ["const", [10, 0]]]}, False, ["capability"]),
        ({"capability": [">=", ["name", "capability"], ["const", [8, 0]]]}, False, []),
        ({"mla": True}, False, ["mla"]),
        ({"mla": False}, True, ["mla"]),
        ({"mla": False, "head_sizes": (64,)}, False, ["head_sizes"]),
        ({"mla": False, "head_sizes": (64, 128)}, False, []),
        ({"conditions": {"head_sizes": ["<=", ["name", "head_size"], ["const", 64]]}}, False, ["head_sizes"]),
        ({"conditions": {"head_sizes": ["name", "who_knows()"]}}, False, []),
        ({"head_sizes": (64,)}, True, []),
        ({}, False, []),
    ],
)
def test_what_a_backend_refuses(facts: dict[str, Any], mla: bool, fields: list[str], small_engine: SmallEngine) -> None:
    found = refusals("SOME", engine_with(small_engine, **facts), HOPPER, mla=mla)
    assert [field for field, _ in found] == fields


def test_a_backend_that_is_not_known(small_engine: SmallEngine) -> None:
    with pytest.raises(MissingFact, match="OTHER"):
        refusals("OTHER", engine_with(small_engine), HOPPER, mla=False)


def test_whose_backend_a_draft_has(small_engine: SmallEngine) -> None:
    engine = small_engine(backends={"draft": DraftAttention(own={"V1": True, "V2.dflash": False})})
    assert own_backend(engine, "V1", "eagle3")
    assert not own_backend(engine, "V2", "dflash")
    with pytest.raises(MissingFact):
        own_backend(engine, "V2", "eagle3")
