"""Change one value in a JSON text, or take it out, and leave every other character as it is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from specfix.deployment.json_text import offset_of, skip_blanks
from specfix.errors import CannotCheck

_DECODE = json.JSONDecoder(parse_int=len).raw_decode  # the numbers themselves do not matter
_COLON = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")


def patch(text: str, pointer: str, value: object) -> str:
    """``text`` with ``value`` at an RFC 6901 pointer: replaced in place, or added as the last key of its object, with
    the objects on the way there, in the file's own style. Raises CannotCheck where the pointer leads through a list or
    a plain value that has no such place."""
    start = offset_of(text, pointer)
    if start is not None:
        old, end = json.JSONDecoder().raw_decode(text, start)
        same = type(old) is type(value) and old == value
        return text if same else text[:start] + json.dumps(value, ensure_ascii=False) + text[end:]
    parent, _, key = pointer.rpartition("/")
    home = offset_of(text, parent)
    name = key.replace("~1", "/").replace("~0", "~")
    if home is None and parent:
        return patch(text, parent, {name: value})
    if home is None or text[home] != "{":
        raise CannotCheck(f"{pointer} cannot be added: {parent or 'the file'} is no object")
    return add(text, home, name, value)


def dropped(text: str, pointer: str) -> str:
    """``text`` without the key at a pointer, and without the comma that set it apart."""
    while (start := offset_of(text, pointer)) is not None:  # it may be there twice
        text = cut(text, offset_of(text, pointer.rpartition("/")[0]) or 0, start)
    return text


def cut(text: str, home: int, start: int) -> str:
    """``text`` without that key of the object at ``home`` whose value begins at ``start``."""
    position, before = home + 1, None
    while True:
        first = skip_blanks(text, position)
        _, after = _DECODE(text, first)
        gap = _COLON.match(text, after)
        value = after + len(gap[0] if gap else ":")
        _, end = _DECODE(text, value)
        comma = skip_blanks(text, end)
        if value == start:
            break
        before, position = end, comma + 1
    if before is not None:
        return text[:before] + text[end:]
    return text[:first] + text[skip_blanks(text, comma + 1) if text[comma] == "," else end :]


@dataclass(frozen=True, slots=True)
class Shape:
    """How an object is written: ``before`` is the blank space before a key, ``colon`` stands between key and value,
    ``end`` is where the last value ends (just behind the brace in an empty object)."""

    before: str
    colon: str
    end: int
    empty: bool


def add(text: str, start: int, key: str, value: object) -> str:
    """``text`` with one more key in the object at ``start``."""
    shape = shape_of(text, start)
    entry = json.dumps(key, ensure_ascii=False) + shape.colon + json.dumps(value, ensure_ascii=False)
    comma = "" if shape.empty else "," + shape.before
    return text[: shape.end] + comma + entry + text[shape.end :]


def shape_of(text: str, start: int) -> Shape:
    """How the object at ``start`` is written, by the last of its keys."""
    position, before, colon = start + 1, "", ": "
    end, empty = position, True
    while text[first := skip_blanks(text, position)] != "}":
        before, empty = text[position:first], False
        _, after = _DECODE(text, first)
        gap = _COLON.match(text, after)
        colon = gap[0] if gap else ":"
        _, end = _DECODE(text, after + len(colon))
        position = skip_blanks(text, end)
        if text[position] == ",":
            position += 1
    return Shape(before, colon, end, empty)
