"""What is kept of what was decided, and for which values it counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from specfix.deployment.config import Config
from specfix.engines.facts.classes import ConfigClass
from specfix.engines.outcomes import LONGEST, MOST, Outcomes
from specfix.engines.transformers.shape import MOST as MOST_OF_ONE
from specfix.engines.transformers.shape import Found, shape_of
from specfix.errors import MissingFact


class Counting:
    """Decides, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.outcomes, self.times = Outcomes(), 0

    def __call__(self, values: Any) -> str:
        def decide() -> str:
            self.times += 1
            return f"{values!r} decided"

        return self.outcomes.recall(values, decide)


def test_values_that_are_equal_and_not_alike_are_two() -> None:
    decided = Counting()
    many: list[Any] = [1, True, 1.0, "1", b"1", None, 0, False, [1], (1,), {"a": 1}, {"a": True}, {"a": None}, {}]
    assert [decided(values) for values in many] == [f"{values!r} decided" for values in many]
    assert decided.times == len(many)
    assert [decided(values) for values in many] == [f"{values!r} decided" for values in many]
    assert decided.times == len(many)


@pytest.mark.parametrize(
    "values", [object(), {"a": [Config({}, "f")]}, "a" * LONGEST], ids=["object", "within", "long"]
)
def test_what_has_no_memory(values: Any) -> None:
    decided = Counting()
    assert decided(values) == decided(values) and decided.times == 2


def test_what_is_raised_is_decided_again() -> None:
    outcomes, answers = Outcomes(), iter((MissingFact("not yet"), 7))

    def decide() -> int:
        answer = next(answers)
        if isinstance(answer, MissingFact):
            raise answer
        return answer

    with pytest.raises(MissingFact, match="not yet"):
        outcomes.recall("key", decide)
    assert outcomes.recall("key", decide) == outcomes.recall("key", decide) == 7


def test_memory_is_bounded() -> None:
    decided = Counting()
    for number in range(3 * MOST):
        decided(number)
    assert len(decided.outcomes._kept) <= MOST


class Cleared(dict[Any, Any]):
    """As where another thread clears it whenever it was looked at."""

    def __contains__(self, key: object) -> bool:
        there = super().__contains__(key)
        self.clear()
        return there

    def __getitem__(self, key: object) -> Any:
        value = super().__getitem__(key)
        self.clear()
        return value

    def get(self, key: object, default: Any = None) -> Any:
        value = super().get(key, default)
        self.clear()
        return value

    def __len__(self) -> int:
        size = super().__len__()
        self.clear()
        return size


def test_another_thread_may_clear_what_is_kept() -> None:
    decided = Counting()
    decided.outcomes._kept = Cleared()
    cls, levels = ConfigClass("Small"), Config({"size": 9, "other": 5}, "config.json").levels
    shape = shape_of(cls, None, levels)
    for _ in range(3):
        assert decided(1) == "1 decided" and decided(None) == "None decided"
        shape._by_values = {("size",): (("size", "other"), Cleared())}
        for _ in range(3):
            assert shape.recall(("size",), {"size": 9, "other": 5}, find) == ("/size", 5)
    cls = ConfigClass("Small")
    vars(cls)["shapes"] = Cleared()
    assert [asked({"size": size}, cls) for size in (1, 2, 2, 1)] == [("/size", size) for size in (1, 2, 2, 1)]


CLASS = ConfigClass("Small")


def find(values: Mapping[str, Any]) -> Found:
    """A look-up whose keys hang on values: ``other`` counts where ``size`` is above 8."""
    if "size" not in values:
        return None
    if values["size"] == 0:
        raise MissingFact("size is", "zero")
    return "/size", values["other"] if values["size"] > 8 else values["size"]


def asked(values: dict[str, Any], cls: ConfigClass, times: list[int] | None = None) -> Found:
    def counted(watched: Mapping[str, Any]) -> Found:
        if times is not None:
            times.append(1)
        return find(watched)

    return shape_of(cls, None, Config(values, "config.json").levels).recall(("size",), values, counted)


def test_a_look_up_is_kept_by_the_values_on_which_it_hangs() -> None:
    cls = ConfigClass("Small")
    times: list[int] = []
    plain = [{"size": size, "other": other, "noise": size} for size in (1, 9, True, 1.0, 12) for other in (5, 6, 5.0)]
    for _ in range(3):
        for values in plain:
            found = asked(values, cls, times)
            assert found == find(values) and repr(found) == repr(find(values))
    learned = 3  # first nothing is known of what it looks at, then ``size``, then ``other`` too
    assert len(plain) <= len(times) <= len(plain) + learned
    before = len(times)
    assert asked({"size": 9, "other": 5, "noise": "another"}, cls, times) == ("/size", 5) and len(times) == before


def test_a_look_up_that_hangs_on_no_value_counts_for_all_of_a_shape() -> None:
    cls = ConfigClass("Small")
    times: list[int] = []
    for noise in (1, 2, None):
        assert asked({"noise": noise}, cls, times) is None
    assert len(times) == 2  # a null is another shape
    assert [shape.found for shape in cls.shapes.values()] == [{("size",): None}] * 2
    assert asked({"noise": 1, "size": 3}, cls) == ("/size", 3)


def test_what_is_missing_is_kept_and_raised_each_time() -> None:
    cls = ConfigClass("Small")
    times: list[int] = []
    for _ in range(4):
        with pytest.raises(MissingFact) as caught:
            asked({"size": 0}, cls, times)
        assert caught.value.args == ("size is", "zero")
    assert len(times) == 2  # once to see what it looks at
    (shape,) = cls.shapes.values()
    assert not shape.found


def test_another_base_is_another_shape() -> None:
    cls, levels = ConfigClass("Small"), Config({"size": 3}, "config.json").levels
    shape, base = shape_of(cls, None, levels), ConfigClass("Base")
    assert shape_of(cls, None, levels) is shape
    assert shape_of(cls, base, levels) is not shape and shape_of(cls, base, levels).base is base


def test_shapes_are_bounded() -> None:
    cls = ConfigClass("Small")
    for number in range(2 * MOST_OF_ONE + 1):
        asked({f"key{number}": 1}, cls)
        asked({"size": number + 1, "other": number}, ConfigClass("Small") if number == 0 else CLASS)
    assert len(cls.shapes) <= MOST_OF_ONE
    ((_, kept),) = CLASS.shapes[next(iter(CLASS.shapes))]._by_values.values()
    assert 0 < len(kept) <= MOST_OF_ONE
