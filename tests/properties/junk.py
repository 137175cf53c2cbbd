"""What may stand in a config in the place of what should: values of every kind, at any place."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from specfix.deployment.expected import INNER, KEYS

from .drawing import Choose, one

ROOT = Path(__file__).parents[2]
BASES = (ROOT / "examples", ROOT / "tests" / "bases")
JUNK: tuple[Any, ...] = (
    None,
    *(0, 1, -1, 2, 3, 64, 2048, 2**31, 2**40, 2**40 + 1, 10**30, -(10**30), 10**399),
    *(0.5, -0.5, 4096.0, 1e308, 1e-320, float("inf"), float("-inf"), float("nan")),
    *(True, False),
    *("", " ", "auto", "none", "1", "-1", "8192", "float16", "eagle3", "a\nb", "\0", "\x1b[31m", "é", "\U0001f600"),
    *("$X", "a/b~c", "%s {} {0}", "../..", "x" * 3000),
    *([], [0], [-1], [1, 1], [1, 2, 3], [1.5], ["a"], [""], [None], [True], [[]], [{}], [1, "a", None], [10**30]),
    list(range(500)),
    *({}, {"a": 1}, {"": None}, {"0": 0}, {"a/b": {"~": []}}, {"default": "default"}, {"type": "yarn"}),
    *({"rope_type": "yarn", "factor": 4.0}, {"layers": {"a": "b"}}, {"quant_method": "fp8"}),
    json.loads("[" * 60 + "]" * 60),
    json.loads('{"a":' * 60 + "1" + "}" * 60),
)


@cache
def configs() -> dict[str, dict[str, Any]]:
    """The configs of the bases, by name."""
    files = sorted(file for base in BASES for file in base.glob("*/config.json"))
    return {file.parent.name: json.loads(file.read_text("utf-8")) for file in files}


@cache
def values_of() -> dict[str, tuple[Any, ...]]:
    """The keys that are read, or stand in some base at any depth, with the values that they have there."""
    found: dict[str, dict[str, Any]] = {key: {} for key in (*KEYS, *(key for inner in INNER.values() for key in inner))}
    for config in configs().values():
        for key, value in entries(config):
            found.setdefault(key, {})[json.dumps(value)] = value
    return {key: tuple(values.values()) for key, values in sorted(found.items())}


def entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Keys and their values, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from entries(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from entries(inner)


def mutated(choose: Choose, config: dict[str, Any]) -> dict[str, Any]:
    """A copy with one value replaced, taken out, or put in."""
    changed = copy.deepcopy(config)
    level: Any = changed
    while isinstance(level, dict):
        inner = [key for key, value in level.items() if isinstance(value, (dict, list)) and value]
        deeper = choose(len(inner) + 2)
        if deeper < 2:
            break
        key = inner[deeper - 2]
        if isinstance(level[key], list):
            at = choose(len(level[key]))
            number = isinstance(level[key][at], (int, float)) and choose(3)
            level[key][at] = near(choose, level[key][at]) if number else junk(choose)
            return changed
        level = level[key]
    known = values_of()
    here = list(level)
    key = one(choose, here) if here and choose(2) else one(choose, list(known))
    way = choose(6)
    if way == 5:
        level.pop(key, None)
    elif way < 3 and known.get(key):
        level[key] = copy.deepcopy(one(choose, known[key]))
    elif way == 3 and isinstance(level.get(key), (int, float)):
        level[key] = near(choose, level[key])
    else:
        level[key] = junk(choose)
    return changed


def near(choose: Choose, value: Any) -> Any:
    """A number close to another one, or the same in another type."""
    whole = int(value) if isinstance(value, int) or math.isfinite(value) else 0
    return one(
        choose,
        (
            value + 1,
            value - 1,
            value * 2,
            value // 2,
            -value,
            f"{value}",
            [value],
            value / 3 if abs(whole) < 2**1000 else 0,
            whole,
        ),
    )


def junk(choose: Choose) -> Any:
    return copy.deepcopy(one(choose, JUNK))
