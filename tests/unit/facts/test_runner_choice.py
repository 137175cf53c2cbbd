"""The runner that what the user says leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specfix

EXAMPLES = Path(__file__).parents[3] / "examples"
PAIR = (EXAMPLES / "llama-3.1-8b-instruct", EXAMPLES / "eagle3-llama-3.1-8b")


@pytest.mark.parametrize(
    ("given", "phase"),
    [
        ({}, "runtime"),  # the V2 runner reads beyond the table
        ({"flags": {"enable_dbo": True}}, "silent"),  # the V1 runner stops drafting
        ({"flags": {"enable_dbo": False}}, "runtime"),
        ({"speculative_config": {"parallel_drafting": True}}, "silent"),
        ({"env": {"VLLM_USE_V2_MODEL_RUNNER": "0"}}, "silent"),
    ],
)
def test_flags_and_keys_choose_as_in_the_engine(given: dict[str, Any], phase: str) -> None:
    report = specfix.check(
        *PAIR, method="eagle3", max_model_len=8192, engine="0.26.0", hardware="h200", select=["POS001"], **given
    )
    assert [reported.finding.phase for reported in report.findings] == [phase]
