"""Pairs that were meant for each other: refused where the engine refuses, silent where it takes them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from specfix.checker.registry import load_rules
from specfix.testing import Case, report_on

from .corpus import Pair, pairs
from .make import HERE, LIST, REASONS, Judged, judged, reference, table

ROOT = HERE.parent.parent
BASES = (ROOT / "examples", ROOT / "tests" / "bases")
CORPUS = Path(os.environ.get("SPECFIX_CORPUS", ROOT.parent / "shared" / "corpus"))
ALL = list(judged(pairs()))
GOOD = [one for one in ALL if one.pair.kind == "good"]
WARNED = 0.1  # of the pairs
# The real mistakes, by draft: the codes one of which must say it. `None`: what the files at hand do not tell.
MISTAKES: dict[str, set[str] | None] = {
    "sgl-project__SpecForge.llama3-8B-eagle3": {"AUX004"},  # an 8B head (hidden_size 4096) for a 70B target (8192)
    "sgl-project__SpecForge.gpt-oss-20B-eagle3": {"AUX006"},  # the head of a 24-layer model for one of 36
    "sgl-project__SpecForge.qwen2.5-7b-eagle3@7e376029": {"AUX004"},  # hidden_size 5120 for a target of 3584
}
WRONG = yaml.safe_load((HERE / "looks_wrong.yaml").read_text("utf-8"))


def name(one: Judged) -> str:
    return f"{one.pair.target}+{one.pair.draft or one.pair.method}"


def test_the_list_is_what_the_command_writes() -> None:
    assert LIST.read_text("utf-8") == table(ALL), "python -m tests.good_pairs.make"


def test_the_reference_was_asked_of_every_pair() -> None:
    assert [(one["target"], one["draft"], one["method"]) for one in reference()] == [one.pair.name for one in ALL]
    assert {one["verdict"] for one in reference()} == {"accepted", "refused"}


@pytest.mark.parametrize("one", [one for one in GOOD if one.verdict == "refused"], ids=name)
def test_what_the_engine_refuses_is_an_error(one: Judged) -> None:
    assert one.codes("error"), f"{one.why}; {one.pair.name}"


@pytest.mark.parametrize("one", [one for one in GOOD if one.verdict == "accepted"], ids=name)
def test_what_the_engine_takes_is_no_error_but_for_a_fact(one: Judged) -> None:
    unfounded = [said for said in one.said if said.severity != "note" and said.code not in one.reasons]
    assert not unfounded, unfounded


@pytest.mark.parametrize("built_in", [False, True], ids=["of two models", "of one"])
def test_few_good_pairs_are_warned_of(built_in: bool) -> None:
    asked = [one for one in GOOD if (one.pair.draft_config is None) is built_in]
    warned = [one.pair.name for one in asked if one.codes("warning")]
    assert len(warned) <= WARNED * len(asked), warned


def test_every_reason_is_needed() -> None:
    given = {reason["fact"]: code for code, reasons in REASONS.items() for reason in reasons}
    used = {" ".join(fact.split()) for one in ALL for fact in one.reasons.values()}
    assert {" ".join(fact.split()) for fact in given} == used


@pytest.mark.parametrize("one", [one for one in ALL if one.pair.kind == "mistake"], ids=name)
def test_a_real_mistake_is_named_for_what_it_is(one: Judged) -> None:
    expected = MISTAKES[one.pair.draft]
    assert expected is None or expected & set(one.codes("error", "warning")), one.said


@pytest.mark.parametrize("given", WRONG, ids=lambda given: given["report"])
def test_what_looks_wrong_and_is_not_stays_quiet(given: dict[str, Any], tmp_path: Path) -> None:
    report = report_on(Case(HERE / "looks_wrong.yaml", 0, given["case"], ()), load_rules(), BASES, tmp_path)
    said = [(one.code, one.severity, one.finding.message) for one in report.findings if one.severity != "note"]
    allowed = set(given.get("warned", ()))
    assert not [one for one in said if one[1] == "error" or one[0] not in allowed]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus that the pairs come from is not here")
def test_the_pairs_are_those_of_the_corpus() -> None:
    assert pairs() == pairs(CORPUS), "python -m tests.good_pairs.make CORPUS"


def test_a_length_that_both_allow() -> None:
    def pair(target: dict[str, Any], draft: dict[str, Any]) -> Pair:
        return Pair("t", "d", "eagle3", "good", target, draft)

    assert pair({"text_config": {"max_position_embeddings": 8192}}, {"max_position_embeddings": 4096}).length == 4096
    assert pair({"max_position_embeddings": 1024}, {}).length == 1024
    assert json.loads(json.dumps(pair({}, {}).speculative)) == {"method": "eagle3", "num_speculative_tokens": 3}
