"""What holds for every place in every JSON text: it is found, and changing it changes nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from specfix.deployment.config import escape
from specfix.deployment.json_text import offset_of
from specfix.repair.patch_json import dropped, patch

MOST = 12  # places of one text that are looked at
NEW: tuple[Any, ...] = (7, "new", {"a": [1]})
NAME = "a new key"


def places(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """(pointer, value) of all that is in a document, itself first."""
    yield at, value
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inner:
        yield from places(held, f"{at}/{escape(str(key))}")


def spelled(text: str) -> str:
    """The document with each number as it is written, keys in their order."""
    return json.dumps(json.loads(text, parse_float=str, parse_int=str, parse_constant=str))


def check_places(values: dict[str, Any], text: str) -> None:
    """Raise AssertionError where a value of ``text``, which holds ``values``, is not found, or not changed alone."""
    for number, (pointer, value) in zip(range(MOST), places(values), strict=False):
        start = offset_of(text, pointer)
        assert start is not None, f"{pointer} is not found"
        found, end = json.JSONDecoder().raw_decode(text, start)
        assert json.dumps(found) == json.dumps(value), f"{pointer} is found to be {found!r}, not {value!r}"
        if pointer:
            assert patch(text, pointer, value) == text, f"{pointer} is changed to what it is"
            check_replaced(text, pointer, NEW[number % len(NEW)], text[:start], text[end:])
        if isinstance(value, dict) and NAME not in value:
            check_added(text, f"{pointer}/{NAME}")


def check_replaced(text: str, pointer: str, value: Any, before: str, behind: str) -> None:
    after = patch(text, pointer, value)
    assert after.startswith(before) and after.endswith(behind), f"{pointer}: something else changed"
    assert json.loads(after[len(before) : len(after) - len(behind)]) == value
    assert patch(after, pointer, value) == after, f"{pointer}: twice is not once"


def check_added(text: str, pointer: str) -> None:
    after = patch(text, pointer, 7)
    start = offset_of(after, pointer)
    assert start is not None and after[start] == "7", f"{pointer} was not added"
    assert patch(after, pointer, 7) == after, f"{pointer}: twice is not once"
    assert spelled(after).replace(f', "{NAME}": "7"', "").replace(f'"{NAME}": "7"', "") == spelled(text)
    assert dropped(after, pointer) == text, f"{pointer}: what was added is not taken out again"
