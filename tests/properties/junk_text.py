"""JSON texts in every spelling that the format has, and texts that are damaged."""

from __future__ import annotations

import json
from typing import Any

from .drawing import Choose, one

NUMBERS = ("0", "-0", "8192", "1.50", "0.1e-7", "1E+05", "12345678901234567890123", "NaN", "-Infinity", "4096.0")
STRINGS = (
    '"a"',
    '""',
    '"b/c~d"',
    '"\\u0061"',
    '"\u00e9"',
    '"\\ud83d\\ude00"',
    '"\\/x\\n\\""',
    '"e\U0001f600"',
    '"\\\\"',
)
WORDS = ("true", "false", "null")
BLANKS = ("", " ", "\n", "\r\n  ", "\t", " \n\n ")
DEPTH = 3
TOKENS = (
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    ":",
    ",",
    "\\",
    "\n",
    "\r",
    "\0",
    "#",
    "$",
    "${",
    "$(",
    "`",
    "<<",
    "|",
    ">",
    "&",
    "*",
    "-",
)
MORE = (
    "!",
    "%",
    "--",
    "---",
    "true",
    "null",
    "0",
    "1e9",
    "é",
    "\ufeff",
    "\ud7ff",
    "\u2028",
    "!!bool ",
    "&a ",
    "*a ",
    "<<: ",
    "0x1",
)


def json_object(choose: Choose, depth: int = DEPTH) -> str:
    """An object as text. A key may stand there twice."""
    entries = [
        "".join(
            (
                blank(choose),
                one(choose, STRINGS),
                blank(choose),
                ":",
                blank(choose),
                value(choose, depth),
                blank(choose),
            )
        )
        for _ in range(choose(4))
    ]
    return "{" + (",".join(entries) or blank(choose)) + "}"


def value(choose: Choose, depth: int) -> str:
    kind = choose(5 if depth else 3)
    if kind == 4:
        return json_object(choose, depth - 1)
    if kind == 3:
        items = [blank(choose) + value(choose, depth - 1) + blank(choose) for _ in range(choose(3))]
        return "[" + (",".join(items) or blank(choose)) + "]"
    return one(choose, (NUMBERS, STRINGS, WORDS)[kind])


def blank(choose: Choose) -> str:
    return one(choose, BLANKS)


def restyled(choose: Choose, given: Any, margin: str = "") -> str:
    """A document written by hand: blanks and line ends of its own, numbers and letters spelled otherwise."""
    eol, colon, escape = one(choose, ("\n", "\r\n", "")), one(choose, (": ", ":", " :  ")), bool(choose(2))

    def write(inner: Any, margin: str) -> str:
        if isinstance(inner, dict) and inner:
            deeper = margin + "\t" * bool(eol)
            entries = [f"{deeper}{json.dumps(key)}{colon}{write(held, deeper)}" for key, held in inner.items()]
            return "{" + eol + f",{eol}".join(entries) + eol + margin + "}"
        if isinstance(inner, list):
            return "[" + ", ".join(write(held, margin) for held in inner) + "]"
        if isinstance(inner, float) and inner.is_integer() and abs(inner) < 1e15:
            return f"{inner:.2f}"
        return json.dumps(inner, ensure_ascii=escape)

    return write(given, margin) + one(choose, ("\n", "", "\n\n"))


def damaged(choose: Choose, data: bytes) -> bytes:
    """Bytes with a few pieces taken out, doubled, moved, or put in."""
    for _ in range(1 + choose(4)):
        start = choose(len(data) + 1)
        end = min(len(data), start + 1 + choose(12))
        other = choose(len(data) + 1)
        token = one(choose, (*TOKENS, *MORE)).encode()
        ways = (
            data[:start] + token + data[start:],
            data[:start] + token + data[end:],
            data[:start] + data[end:],
            data[:end] + data[start:end] * (1 + choose(3)) + data[end:],
            data[:other] + data[start:end] + data[other:],
            data[:start] + bytes([choose(256)]) + data[start + 1 :],
        )
        data = one(choose, ways)
    return data
