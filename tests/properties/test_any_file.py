"""Every reader of a file or a text, given anything: it reads, or refuses in one sentence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

from .drawing import Choose, examples, made, one
from .json_places import check_places
from .junk import junk, mutated
from .junk_text import damaged, json_object

SLOW = frozenset({"pair", "beside"})  # each a whole check, of which test_any_pair.py has its fill
JSON = {"config": b"", "index": b"", "tokenizer": b"", "hardware": b"", "baseline": b""}
JSON |= {f"beside {number}": bytes([number]) for number in range(4)}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in SLOW])
@examples(5)
@given(st.binary(max_size=200))
def test_any_bytes(name: str, data: bytes) -> None:
    TARGETS[name](data)


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in SLOW])
@examples(10)
@given(st.data())
def test_what_is_nearly_right(name: str, data: st.DataObject) -> None:
    TARGETS[name](data.draw(made(lambda choose: damaged(choose, one(choose, seeds()[name])))))


@pytest.mark.parametrize("name", JSON)
@examples(2)
@given(ANYTHING)
def test_any_json(name: str, value: object) -> None:
    TARGETS[name.partition(" ")[0]](JSON[name] + json.dumps(value).encode())


@pytest.mark.parametrize("name", JSON)
@examples(5)
@given(st.data())
def test_json_with_values_changed(name: str, data: st.DataObject) -> None:
    target, head = name.partition(" ")[0], JSON[name]
    right = [seed[len(head) :] for seed in seeds()[target] if seed.startswith(head)]
    TARGETS[target](head + data.draw(made(lambda choose: changed(choose, right))))


def changed(choose: Choose, several: list[bytes]) -> bytes:
    """One of several JSON objects with up to four values changed, at any depth."""
    values = json.loads(one(choose, several))
    for _ in range(1 + choose(4)):
        values = mutated(choose, values)
    for key in list(values):
        if not choose(12):
            values[key] = junk(choose)
    return json.dumps(values).encode()


@examples(20)
@given(made(json_object))
def test_every_place_of_a_text(text: str) -> None:
    """Each value is found and changed alone, however the text is written."""
    check_places(json.loads(text), text)
