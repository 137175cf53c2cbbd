"""Any pair, served in any way, on any release: every rule says something or nothing, and each form of the report is
made of it."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from hypothesis import given, note

import specfix
from specfix.errors import CannotCheck
from specfix.report import FORMATS, render
from specfix.report.terminal import Terminal
from tests.fuzz.targets import check_sentence, judge

from .drawing import examples, made
from .pairs import Pair, any_pair, shown, workplace

TERMINAL = Terminal(80)


@examples(10)
@given(made(any_pair))
def test_a_pair_is_judged_or_refused(pair: Pair) -> None:
    note(shown(pair.given))
    check_pair(pair)


@pytest.mark.parametrize("value", [10**399, -(10**398), float("nan"), "1e999"])
@pytest.mark.parametrize("key", ["suffix_decoding_max_cached_requests", "suffix_decoding_max_spec_factor"])
def test_a_number_that_no_float_holds(key: str, value: object) -> None:
    given = {"engine": "0.26.0", "serve": {"method": "eagle3", "speculative": {key: value}}}
    bases = {"target": "llama-3.1-8b-instruct", "draft": "eagle3-llama-3.1-8b"}
    check_pair(Pair({**given, **{side: {"base": base} for side, base in bases.items()}}))


def check_pair(pair: Pair) -> None:
    with workplace() as folder:
        models, options = pair.written(folder)
        try:
            report = specfix.check(*models, **options)
        except CannotCheck as problem:
            check_sentence(str(problem).replace(str(folder), ""))
            return
        judge(report)
        told = {form: render(report, form, TERMINAL) for form in FORMATS}
    assert json.loads(told["json"])["verdict"] == report.verdict
    json.loads(told["sarif"])
    ElementTree.fromstring(told["junit"])
    for form, text in told.items():
        assert all(char.isprintable() or char == "\n" for char in text), f"{form} holds a control character"
