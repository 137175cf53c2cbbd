"""JSON from strangers: read within bounds, and find the line of a value again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

from specfix.errors import CannotCheck

# Bytes that a file of each kind may have; real ones need a small part of it.
CONFIG_LIMIT = 8 * 2**20
INDEX_LIMIT = 64 * 2**20
TOKENIZER_LIMIT = 32 * 2**20

DEPTH_LIMIT = 100  # nesting; real configs stay under ten, and every later reader may recurse
DIGITS_LIMIT = 400  # of an integer; a float ends at 309

# Bytes that Python may make of one text, reckoned by what it spends on an object, on a list, and on any other value: a
# few megabytes of "[],[],[]" would take a gigabyte. Of real files a vocabulary comes nearest, with a third of it.
MEMORY_LIMIT = 150 * 2**20
OBJECT_COST, LIST_COST, VALUE_COST = 240, 88, 64
PAIR_COST = 64  # of a key with its value, where an object is made of such pairs

# Of a tokenizer without its merges, two of which are held at once: bytes that Python makes of its text, and keys, each
# of which takes 150 more. The largest that is served has 34 MiB, and 307,000.
TEXT_LIMIT = 64 * 2**20
MEMBERS_LIMIT = 700_000

WIDE = re.compile(rb"[\xf0-\xf4]")  # begins a character in UTF-8 that is beyond U+FFFF
BLANK = re.compile(r"[ \t\r\n]*")
# the merges of a byte-pair vocabulary, and how a tokenizer.json ends whose model ends with them
MERGES = re.compile(rb'"merges"\s*:\s*\[')
END_OF_MERGES = re.compile(rb"\]\s*\}\s*\}\s*\Z")


Pairs = Callable[[list[tuple[str, Any]]], dict[str, Any]]


def read_json_object(
    source: Path | bytes, name: str, limit: int = CONFIG_LIMIT, pairs: Pairs | None = None
) -> tuple[dict[str, Any], str]:
    """The JSON object in a file or in bytes, and its text. ``name`` is what messages call it; ``pairs`` makes the
    objects in it.

    As in Python's own reader, which engines use, a BOM, NaN and Infinity are taken, and of a repeated key the
    last value counts. Raises CannotCheck for what is no such object, is larger than ``limit`` or is nested
    too deep.
    """
    data = read_bytes(source, name, limit) if isinstance(source, Path) else source
    text = decoded(data, name, limit, VALUE_COST if pairs is None else VALUE_COST + PAIR_COST)
    del data, source  # what is made of them is much more
    return parse_object(text, name, pairs), text


def decoded(data: bytes, name: str, limit: int, value_cost: int = VALUE_COST) -> str:
    """The text of JSON that will fit into memory. Raises CannotCheck."""
    if len(data) > limit:
        raise CannotCheck(f"{name} is larger than {limit:,} bytes, more than such a file ever needs")
    refuse_heavy(data, name, value_cost)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CannotCheck(f"{name}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8 text") from None


def read_bytes(path: Path, name: str, limit: int) -> bytes:
    """At most ``limit`` + 1 bytes of a regular file. Raises CannotCheck for what cannot be read."""
    try:
        if not path.is_file():  # a pipe or a device would block or never end
            absent = "is a link that leads nowhere" if path.is_symlink() else "does not exist"
            raise CannotCheck(f"{name} {'is not a regular file' if path.exists() else absent}")
        with open_file(path) as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise CannotCheck(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if data is None:
        raise CannotCheck(f"{name} cannot be read: there is nothing in it yet")
    return data


def open_file(path: Path) -> IO[bytes]:
    """A file to read, without waiting: some below /proc call themselves regular, and are read as pipes are."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))


def size_as_text(data: bytes) -> int:
    """Bytes that a Python text takes at most: the widest character widens all of it."""
    return len(data) if data.isascii() else len(data) * (4 if WIDE.search(data) else 2)


def refuse_heavy(data: bytes, name: str, value_cost: int = VALUE_COST) -> None:
    """Raise CannotCheck for JSON of so many values that it would fill memory."""
    size = size_as_text(data)
    size += OBJECT_COST * data.count(b"{") + LIST_COST * data.count(b"[") + value_cost * data.count(b",")
    if size > MEMORY_LIMIT:
        raise CannotCheck(f"{name} holds more values than {MEMORY_LIMIT:,} bytes of memory have room for")


def parse_object(text: str, name: str, pairs: Pairs | None = None) -> dict[str, Any]:
    """``text`` as a JSON object. Raises CannotCheck."""

    def integer(digits: str) -> int:
        # Python turns long numbers into integers in quadratic time, or refuses them with a message of its own
        if len(digits) > DIGITS_LIMIT:
            raise CannotCheck(f"{name} holds an integer of {len(digits):,} digits ({digits[:20]}…)")
        return int(digits)

    too_deep = f"{name} is nested more than {DEPTH_LIMIT} levels deep"
    try:
        values = json.loads(text, parse_int=integer if many_digits(text) else None, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise CannotCheck(f"{name}, line {error.lineno} column {error.colno}: not valid JSON ({error.msg})") from None
    except RecursionError:
        raise CannotCheck(too_deep) from None
    if not isinstance(values, dict):
        raise CannotCheck(f"{name} holds {show(values)} where a JSON object is expected")
    if depth_exceeds(values, DEPTH_LIMIT):
        raise CannotCheck(too_deep)
    if "\\ud" in text or "\\uD" in text:
        refuse_surrogates(values, name)
    return values


def once(name: str, *, alike: bool) -> Pairs:
    """What makes objects, and raises CannotCheck for one with two values under one key, of which readers keep the last,
    and only who wrote it knows which was meant; ``alike``: also where both are the same."""

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: dict[str, Any] = {}
            for key, value in pairs:
                if key in seen and (alike or differ(seen[key], value)):
                    raise CannotCheck(f"{name} has {show(key)} twice: {show(seen[key])} and {show(value)}")
                seen[key] = value
        return found

    return made


def repeated(text: str) -> str | None:
    """A key of JSON text that has two values, of which readers keep the last; None where there is none, or no JSON."""
    found: list[str] = []

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        kept = dict(pairs)
        if len(kept) < len(pairs):
            found.extend(key for key, value in pairs if differ(value, kept[key]))
        return kept

    try:
        json.loads(text, object_pairs_hook=made)
    except (ValueError, RecursionError):
        return None
    return found[0] if found else None


def differ(one: Any, other: Any) -> bool:
    """Whether two values are not the same: 1 is neither 1.0 nor true."""
    return type(one) is not type(other) or bool(one != other)


def many_digits(text: str) -> bool:
    """Whether ``text`` may hold a number of DIGITS_LIMIT digits: every block of half as many is looked at once."""
    size = DIGITS_LIMIT // 2
    return any(text[start : start + size].isdigit() for start in range(0, len(text), size))


def read_tokenizer(path: Path, name: str) -> dict[str, Any]:
    """A tokenizer file. Of one that ends with its merges, as most do, these are left out: they are two thirds of it,
    and the vocabulary says all about ids. Raises CannotCheck."""
    try:
        return parse_object(tokenizer_text(path, name, without_merges=True), name)
    except CannotCheck:  # other keys follow the merges, or it is none
        return parse_object(tokenizer_text(path, name), name)


def tokenizer_text(path: Path, name: str, *, without_merges: bool = False) -> str:
    """Its text. The bytes are let go before anything is made of it: two such files are in memory at a time."""
    data = read_bytes(path, name, TOKENIZER_LIMIT)
    if without_merges and len(data) <= TOKENIZER_LIMIT:
        start, end = MERGES.search(data), END_OF_MERGES.search(data, max(len(data) - 100, 0))
        if start and end and start.end() <= end.start():
            data = data[: start.end()] + data[end.start() :]
    if len(data) <= TOKENIZER_LIMIT:  # a larger one is told by its size
        if size_as_text(data) > TEXT_LIMIT:
            raise CannotCheck(f"{name} takes more than {TEXT_LIMIT:,} bytes of memory as text")
        if (keys := data.count(b":")) > MEMBERS_LIMIT:
            raise CannotCheck(f"{name} holds some {keys:,} keys, and no more than {MEMBERS_LIMIT:,} are read")
    return decoded(data, name, TOKENIZER_LIMIT)


def depth_exceeds(value: Any, limit: int) -> bool:
    """Whether objects and arrays are nested more than ``limit`` levels deep."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limit):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def refuse_surrogates(values: Any, name: str) -> None:
    """Raise CannotCheck where a string holds half of a surrogate pair: nothing could write it out again."""
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise CannotCheck(f"{name} holds \\u{half:04x}, half of a surrogate pair, which is no character") from None


def show(value: Any, limit: int = 60) -> str:
    """``value`` as a message quotes it: JSON on one line in plain ASCII, shortened. YAML and TOML know dates, too, and
    integers without end."""
    try:
        text = json.dumps(value[:limit] if isinstance(value, str) else value, default=str)
    except ValueError:  # Python writes no integer of so many digits
        text = "a number beyond all reason"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plain(text: str, limit: int = 100) -> str:
    """A name out of a file as a message may hold it: without control characters, and not endless."""
    return json.dumps(text[:limit])[1:-1]


def wrong_value(file: str, text: str, pointer: str, value: Any, expected: str) -> NoReturn:
    """Raise CannotCheck for a value of another type than the engine can use."""
    line = line_of(text, pointer)
    where = file if line is None else f"{file}, line {line}"
    raise CannotCheck(f"{where}: {pointer} is {show(value)}, not {expected}")


def line_of(text: str, pointer: str) -> int | None:
    """The line, from 1, on which the value of an RFC 6901 pointer begins; None where there is none."""
    start = offset_of(text, pointer)
    return None if start is None else text.count("\n", 0, start) + 1


def offset_of(text: str, pointer: str) -> int | None:
    """Where in ``text`` the value of ``pointer`` begins. Python's C scanner skips what is on the way."""
    try:
        start = skip_blanks(text, 0)
        for part in pointer.split("/")[1:]:
            found = child_offset(text, start, part.replace("~1", "/").replace("~0", "~"))
            if found is None:
                return None
            start = found
        return start
    except (ValueError, IndexError, RecursionError):
        return None  # not the text that was parsed


def child_offset(text: str, start: int, name: str) -> int | None:
    """Where the value of key or index ``name`` begins in what is at ``start``: of equal keys, the last."""
    opening = text[start]
    if opening not in "{[":
        return None
    decode = json.JSONDecoder(parse_int=len).raw_decode  # the numbers themselves do not matter
    position, index, found = skip_blanks(text, start + 1), 0, None
    while text[position] not in "}]":
        key = str(index)
        if opening == "{":
            key, position = decode(text, position)
            position = skip_blanks(text, skip_blanks(text, position) + 1)  # past the colon
        if key == name:
            found = position
        _, position = decode(text, position)
        position = skip_blanks(text, position)
        if text[position] == ",":
            position = skip_blanks(text, position + 1)
        index += 1
    return found


def skip_blanks(text: str, position: int) -> int:
    """The first position from ``position`` on that is no white space."""
    match = BLANK.match(text, position)
    return match.end() if match else position
