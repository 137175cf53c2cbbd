"""Conditions in three-valued logic, and lifting them from source."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.compiled import Condition
from specfix.engines.conditions import choose, evaluate, holding, names
from specfix.engines.facts.decisions import Step
from specfix.engines.source.lift import RAISES, Lifter
from specfix.engines.source.tree import SourceTree, walk

A: Condition = ["name", "a"]
B: Condition = ["name", "b"]
TRUE: Condition = ["const", True]


@pytest.mark.parametrize(
    ("condition", "values", "holds", "missing"),
    [
        (["and", A, B], {"a": False}, False, set()),
        (["and", A, B], {"b": False}, False, set()),
        (["and", A, B], {"a": True}, None, {"b"}),
        (["or", A, B], {"b": 1}, True, set()),
        (["or", A, B], {"b": 0}, None, {"a"}),
        (["not", A], {}, None, {"a"}),
        (["not", A], {"a": []}, True, set()),
        ([">", A, ["const", 1]], {"a": 2}, True, set()),
        ([">", A, ["const", 1]], {"a": None}, None, {"? None > 1"}),
        (["in", A, ["const", ["x", "y"]]], {"a": "y"}, True, set()),
        (["is not", A, ["const", None]], {"a.b": 1}, True, set()),
        (["==", A, ["const", 3]], {"a.b": 1}, None, set()),
        (["is", A, ["const", None]], {"a": None}, True, set()),
        (["any", A, ["==", ["name", "item"], B]], {"a": ["x", "y"], "b": "y"}, True, set()),
        (["any", A, ["==", ["name", "item"], B]], {"b": "y"}, None, {"a"}),
        (["all", A, ["name", "item"]], {"a": []}, True, set()),
        (["<", ["count", A, ["==", ["name", "item"], ["const", 1]]], ["len", A]], {"a": [1, 2]}, True, set()),
        (["len", ["or", A, ["const", []]]], {"a": None}, False, set()),
        (["if", A, B, ["const", False]], {"b": False}, False, set()),
        (["if", A, B, ["const", False]], {"b": True}, None, {"a"}),
        (["in", ["const", 1], ["if", A, ["const", [1]], ["const", []]]], {"a": True}, True, set()),
        (["in", ["const", 1], ["list", A, B]], {"a": 1}, None, {"b"}),
        (["?", "a loop"], {}, None, {"? a loop"}),
        (["or", ["?", "a loop"], A], {"a": True}, True, set()),
    ],
)
def test_what_is_not_known_stays_unknown_unless_it_does_not_matter(
    condition: Condition, values: dict[str, object], holds: bool | None, missing: set[str]
) -> None:
    found: set[str] = set()
    assert evaluate(condition, values, found) is holds
    assert found == missing


def test_the_first_step_that_holds_is_the_outcome() -> None:
    steps = [Step(A, "one", 1), Step(B, "two", 2), Step(TRUE, "three", 3)]
    assert choose(steps, {"a": False, "b": True}).then == "two"
    assert choose(steps, {"a": False}).needs == ("b",)
    assert choose(steps, {"a": False}).then is None


def test_unknown_steps_are_no_matter_where_all_lead_to_one_outcome() -> None:
    steps = [Step(A, "same", 1), Step(B, "other", 2), Step(TRUE, "same", 3)]
    assert choose(steps, {"b": False}).then == "same"
    assert choose([Step(A, "x", 1)], {}).then is None  # no step need hold


def test_features_are_all_tried() -> None:
    sure, maybe, needs = holding([Step(A, "x", 1), Step(B, "y", 2), Step(["not", A], "z", 3)], {"a": True})
    assert ([s.then for s in sure], [s.then for s in maybe], needs) == (["x"], ["y"], ("b",))


SOURCE = """
    from .other import Level, PLAIN
    from .parts import PartConfig

    FAST = frozenset({"Beta", "Alpha"})

    def fast_ones():
        from somewhere import machine
        if machine.is_odd():
            return FAST - {"Beta"}
        return FAST

    class Whole:
        part: PartConfig
        size: int = 1

        def returns(self):
            if self.size > 3:
                raise ValueError("too large")
            chosen = env.CHOICE
            if chosen is not None:
                return chosen
            if self._is_plain() and not self.extras():
                return False
            return True

        def _is_plain(self):
            part = self.part
            if part is None:
                return False
            return any(kind in FAST for kind in getattr(part, "kinds", [])) or part.is_small

        def aliases(self):
            return any(kind in fast_ones() for kind in self.kinds)

        def levels(self):
            return self.part.level == Level.HIGH and self.name in PLAIN

        def mixes(self):
            kinds = self.kinds or []
            marked = sum(kind == "m" for kind in kinds)
            return 0 < marked < len(kinds)

        def late(self):
            found = False
            if self.a:
                found = bool(ask(group="plugins"))
            return found

        def loops(self):
            for kind in self.kinds:
                if kind:
                    return True
            return self.part.holds_more

        def extras(self) -> list[str]:
            extras: list[str] = []
            if self.size == 1:
                extras.append("small size")
            if self.part.wide:
                extras.extend(self._wide_extras())
            if {"One", "Two"}.intersection(self.kinds or []):
                extras.append(f"kind of size {self.size}")
            return extras

        def _wide_extras(self):
            if env.CHOICE is None:
                return ["width"]
            more = []
            if self.a:
                more.append("width and a")
            return more

        def path(self):
            if self.kind == "x":
                pass
            elif self.kind in ("y", "z"):
                self.call()
"""
PARTS = """
    class PartConfig:
        level: int = 0
        first: bool = False
        second: int = Field(default=2)

        @property
        def wide(self):
            return self.first or self.second > 5

        @property
        def is_small(self):
            return self.computed_elsewhere < 3

        def holds_more(self):
            return False
"""
OTHER = """
    class Level:
        HIGH = 3

    PLAIN = ["p", "q"]
"""


@pytest.fixture
def lifter(tmp_path: Path) -> Lifter:
    for name, text in {"whole.py": SOURCE, "parts.py": PARTS, "other.py": OTHER}.items():
        (tmp_path / name).write_text(dedent(text))
    return Lifter(SourceTree(tmp_path), "whole.py", "Whole", lists={"extras": "extras"})


def test_ways_out_keep_their_order_and_what_they_ask(lifter: Lifter) -> None:
    steps = lifter.ways("returns")
    assert [step.then for step in steps] == [RAISES, True, False, False, True]
    assert steps[0].when == [">", ["name", "size"], ["const", 3]]
    assert names(steps[1].when) == {"env.CHOICE"}
    values = {"size": 1, "env.CHOICE": None, "part.kinds": ["Alpha"]}
    assert choose(steps, {**values, "extras": []}).then is False
    assert choose(steps, {**values, "extras": ["x"]}).then is True
    assert choose(steps, values).needs == ("extras",)
    assert choose(steps, {**values, "env.CHOICE": True}).then is True
    assert choose(steps, {**values, "part.kinds": [], "part.is_small": False}).then is True
    assert choose(steps, {"size": 9}).then == RAISES
    assert lifter.defaults == {"part.kinds": []}


@pytest.mark.parametrize(
    ("method", "values", "holds"),
    [
        ("aliases", {"machine.is_odd()": False, "kinds": ["Beta"]}, True),
        ("aliases", {"machine.is_odd()": True, "kinds": ["Beta"]}, False),
        ("levels", {"part.level": 3, "name": "q"}, True),
        ("levels", {"part.level": 3, "name": "r"}, False),
        ("mixes", {"kinds": ["m", "n"]}, True),
        ("mixes", {"kinds": ["m", "m"]}, False),
        ("mixes", {"kinds": None}, False),
        ("late", {"a": False}, False),
        ("late", {"a": True, "ask(group='plugins')": ["p"]}, True),
        ("loops", {"kinds": [], "part.holds_more": False}, None),
    ],
)
def test_lifted_methods_decide_as_the_source_does(
    lifter: Lifter, method: str, values: dict[str, object], holds: bool | None
) -> None:
    assert evaluate(lifter.condition(method), values) is holds


def test_texts_carry_the_conditions_of_every_list_that_is_added(lifter: Lifter) -> None:
    texts = {step.then: step.when for step in lifter.texts("extras")}
    assert list(texts) == ["small size", "width", "width and a", "kind of size {size}"]
    wide = ["or", ["name", "part.first"], [">", ["name", "part.second"], ["const", 5]]]
    unset = ["is", ["name", "env.CHOICE"], ["const", None]]
    assert texts["width"] == ["and", wide, unset]
    assert texts["width and a"] == ["and", wide, ["name", "a"], ["not", unset]]
    assert evaluate(texts["kind of size {size}"], {"kinds": ["Two"]}) is True


def test_a_call_is_reached_under_the_tests_around_it(lifter: Lifter) -> None:
    function = lifter.tree.function("whole.py", "Whole.path")
    assert function is not None
    reached = lifter.reached("path", next(walk(function, ast.Call)))
    assert [evaluate(reached, {"kind": kind}) for kind in "xyw"] == [False, True, False]


def test_what_is_not_there_is_unknown(lifter: Lifter) -> None:
    assert evaluate(lifter.condition("nothing"), {}) is None
