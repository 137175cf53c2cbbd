"""A record is what a frozen dataclass is, in all that the code asks of one."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from specfix import record as module
from specfix.record import record


@record(frozen=True)
class Base:
    name: str
    size: int = 1
    tags: tuple[str, ...] = field(default=(), kw_only=True)


@record(frozen=True)
class Made(Base):
    kind: str = "plain"
    extra: dict[str, int] = field(default_factory=dict)
    seen: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class PlainBase:
    name: str
    size: int = 1
    tags: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class Plain(PlainBase):
    kind: str = "plain"
    extra: dict[str, int] = field(default_factory=dict)
    seen: int = field(default=0, compare=False, repr=False)


GIVEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    (("a", 2, "b", {"x": 1}, 5), {"tags": ("t",)}),
    ((), {"name": "a", "kind": "k"}),
]


@pytest.mark.parametrize(("values", "named"), GIVEN)
def test_it_is_made_shown_and_taken_apart_as_a_dataclass(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    made, plain = Made(*values, **named), Plain(*values, **named)
    assert asdict(made) == asdict(plain)
    assert repr(made) == repr(plain).replace("Plain", "Made")
    assert [each.name for each in fields(made)] == [each.name for each in fields(plain)]
    assert asdict(replace(made, size=7)) == asdict(replace(plain, size=7))
    assert TypeAdapter(Made).validate_python(asdict(made)) == made
    assert copy(made) == deepcopy(made) == made


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), (("a", 1, "b", {}, 0, 9), {}), (("a",), {"name": "b"}), (("a",), {"other": 1}), ((), {"size": 1})],
)
def test_wrong_values_are_refused_as_by_a_dataclass(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    for kind in (Made, Plain):
        with pytest.raises(TypeError):
            kind(*values, **named)


def test_records_are_equal_by_what_is_compared() -> None:
    assert Made("a", seen=1) == Made("a", seen=2) != Made("b")
    assert Base("a") != Made("a")
    assert len({Base("a"), Base("a"), Base("b")}) == 2
    with pytest.raises(TypeError):
        hash(Made("a"))  # holds a dict


def test_it_is_frozen_and_no_two_share_what_is_made_anew() -> None:
    made = Made("a")
    with pytest.raises(FrozenInstanceError):
        made.name = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del made.name
    assert made.extra is not Made("a").extra


def test_one_that_is_made_often_is_made_as_a_dataclass_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OFTEN", 3)

    @record(frozen=True)
    class Often(Base):
        kind: str = "plain"
        extra: dict[str, int] = field(default_factory=dict)

    ours = Often.__init__
    made = [Often("a", 2, kind="k") for _ in range(4)]
    assert Often.__init__ is not ours
    assert all(each == made[0] and each.extra is not made[0].extra for each in made[1:])
    assert [asdict(each) for each in made] == [asdict(made[0])] * 4
    assert [(each.name, each.type) for each in fields(Often)] == [(n, t) for n, t in FIELDS if n != "seen"]
    for values, named in ((), {}), (("a",), {"name": "b"}), (("a",), {"other": 1}):
        with pytest.raises(TypeError):
            Often(*values, **named)
    with pytest.raises(FrozenInstanceError):
        made[0].name = "b"  # type: ignore[misc]


FIELDS = [(each.name, each.type) for each in fields(Plain)]


def test_who_looks_at_the_fields_leaves_the_class_as_it_is() -> None:
    """Others may be making records of it meanwhile."""

    @record(frozen=True)
    class Shown(Made):
        more: int = field(default=3, repr=False)

    before = dict(vars(Shown))
    assert [each.name for each in fields(Shown)] == [*(name for name, _ in FIELDS), "more"]
    changed = {name for name, value in vars(Shown).items() if before.get(name) is not value}
    assert changed == {"__dataclass_fields__", "__dataclass_params__"}
