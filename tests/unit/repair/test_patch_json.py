"""One value of a JSON text changes, and not a character beside it."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from specfix.errors import CannotCheck
from specfix.repair.patch_json import patch

CONFIG = """{
  "architectures": ["LlamaForCausalLM"],
  "max_position_embeddings": 2048,
  "rms_norm_eps": 1e-05,
  "rope_theta": 500000.0,
  "big": 12345678901234567890123,
  "unknown": {"a": 1.10, "b": null},
  "empty": {}
}
"""


@pytest.mark.parametrize(
    ("text", "pointer", "value", "expected"),
    [
        (CONFIG, "/max_position_embeddings", 8192, CONFIG.replace("2048", "8192")),
        (CONFIG, "/max_position_embeddings", 2048, CONFIG),
        (CONFIG, "/rope_theta", 500000, CONFIG.replace("500000.0", "500000")),
        (CONFIG, "/unknown/b", [1, 2], CONFIG.replace("null", "[1, 2]")),
        (CONFIG, "/unknown/c", 3, CONFIG.replace('"b": null', '"b": null, "c": 3')),
        (CONFIG, "/empty/x", "é", CONFIG.replace("{}", '{"x": "é"}')),
        (CONFIG, "/ids", [2, 16], CONFIG.replace('"empty": {}', '"empty": {},\n  "ids": [2, 16]')),
        (CONFIG, "/new/a~1b", 1, CONFIG.replace('"empty": {}', '"empty": {},\n  "new": {"a/b": 1}')),
        (CONFIG, "/architectures/0", "X", CONFIG.replace("LlamaForCausalLM", "X")),
        ("{}", "/a", 1, '{"a": 1}'),
        ('{"a":1,"b":2}', "/c", 3, '{"a":1,"b":2,"c":3}'),
        ('{"a":1,"b":2}', "/a", 3, '{"a":3,"b":2}'),
        ('{\r\n\t"a" : 1\r\n}\r\n', "/b", 2, '{\r\n\t"a" : 1,\r\n\t"b" : 2\r\n}\r\n'),
        ('{"a": 1, "a": 2}', "/a", 3, '{"a": 1, "a": 3}'),  # of a repeated key the last one counts
        ('{"a": NaN}', "/a", 1, '{"a": 1}'),
        ('{"a": true}', "/a", 1, '{"a": 1}'),
    ],
)
def test_patches(text: str, pointer: str, value: object, expected: str) -> None:
    assert patch(text, pointer, value) == expected
    assert patch(expected, pointer, value) == expected


@pytest.mark.parametrize("pointer", ["/architectures/7", "/max_position_embeddings/a", "/unknown/b/c"])
def test_no_such_place(pointer: str) -> None:
    with pytest.raises(CannotCheck, match="cannot be added"):
        patch(CONFIG, pointer, 1)


def random_value(numbers: random.Random, depth: int = 3) -> Any:
    kind = numbers.randrange(7 if depth else 5)
    if kind == 5:
        return [random_value(numbers, depth - 1) for _ in range(numbers.randrange(4))]
    if kind == 6:
        keys = ["a", "b/c", "d~", 'q"', "é", "\\"]
        return {key: random_value(numbers, depth - 1) for key in numbers.sample(keys, numbers.randrange(5))}
    return [None, True, numbers.randrange(10**6), numbers.random(), "te:x,t}"][kind]


def pointers(value: Any, at: str = "") -> list[tuple[str, tuple[Any, ...]]]:
    """Each place in ``value`` as a pointer and as keys."""
    found: list[tuple[str, tuple[Any, ...]]] = []
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        pointer = f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}"
        found += [(pointer, (key,)), *((below, (key, *keys)) for below, keys in pointers(inner, pointer))]
    return found


def spelled(text: str) -> Any:
    """The document with each number as it is written."""
    return json.loads(text, parse_float=str, parse_int=str)


@pytest.mark.parametrize("seed", range(300))
def test_any_text(seed: int) -> None:
    """The value is there, and all others are as they were: order, spelling and blanks included."""
    numbers = random.Random(seed)
    document = {"top": random_value(numbers), "next": [random_value(numbers)], "z": {"k": 1}}
    style: list[dict[str, Any]] = [{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}]
    text = json.dumps(document, ensure_ascii=numbers.random() < 0.5, **numbers.choice(style))
    text = re.sub(r'("k": ?)1', r"\g<1>1.50e0", text)
    pointer, keys = numbers.choice([place for place in pointers(document) if place[1][0] != "z"])
    value = random_value(numbers)
    changed = patch(text, pointer, value)
    expected = home = spelled(text)
    for key in keys[:-1]:
        home = home[key]
    home[keys[-1]] = spelled(json.dumps(value))
    assert json.dumps(spelled(changed)) == json.dumps(expected)
    assert text.endswith(changed[changed.index('"z"') :]) and changed.startswith(text[: text.index('"top"')])
    added = patch(changed, "/z/new", value)
    expected["z"]["new"] = spelled(json.dumps(value))
    assert json.dumps(spelled(added)) == json.dumps(expected)
    assert added.startswith(changed.rstrip("} \t\n"))
