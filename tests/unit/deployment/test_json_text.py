from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from specfix.deployment import json_text
from specfix.deployment.json_text import line_of, read_json_object
from specfix.errors import CannotCheck

FOR_EVER = 10  # seconds of CPU, on a busy machine: what is not bounded takes longer
HOSTILE = [
    (b"", "config.json, line 1 column 1: not valid JSON"),
    (b'{"a": 1,\n "b": }', "config.json, line 2 column 7: not valid JSON"),
    (b'{"a": "\xff"}', "config.json, line 1: byte 0xff is not UTF-8 text"),
    (b'{"a": 1}\x00', "line 1 column 9: not valid JSON"),
    (b"[1, 2]", "config.json holds [1, 2] where a JSON object is expected"),
    (b"null", "config.json holds null where"),
    (b"[" * 100_000 + b"]" * 100_000, "config.json is nested more than 100 levels deep"),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "config.json is nested more than 100 levels deep"),
    (b'{"a":' * 500 + b"1" + b"}" * 500, "config.json is nested more than 100 levels deep"),
    (b'{"a": ' + b"9" * 10_000 + b"}", "holds an integer of 10,000 digits (99999999999999999999…)"),
    (b'{"a": -' + b"9" * 8_000_000 + b"}", "holds an integer of 8,000,001 digits"),
    (b'{"model_type": "\\ud800"}', "holds \\ud800, half of a surrogate pair"),
    (b'{"\\uDfFf": 1}', "holds \\udfff, half of a surrogate pair"),
    (b'{"a": "' + b"x" * 17_000_000 + b'"}', "config.json is larger than 8,388,608 bytes"),
]


@pytest.mark.parametrize(("data", "message"), HOSTILE, ids=[message[:40] for _, message in HOSTILE])
def test_hostile_text_is_refused_in_one_sentence_and_at_once(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(data)
    for source in (data, path):
        start = time.process_time()
        with pytest.raises(CannotCheck) as refused:
            read_json_object(source, "config.json")
        assert time.process_time() - start < FOR_EVER
        assert message in str(refused.value)
        assert len(str(refused.value)) < 200 and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'{"time_step_limit": [0.0, Infinity]}', {"time_step_limit": [0.0, float("inf")]}),
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\N{GRINNING FACE}"}),
        (b'{"a": "[[[[{{{{"}', {"a": "[[[[{{{{"}),
        (b" {}\r\n", {}),
    ],
)
def test_what_engines_read_is_read(data: bytes, values: dict[str, Any]) -> None:
    assert read_json_object(data, "config.json")[0] == values


def test_no_file_and_no_regular_file(tmp_path: Path) -> None:
    with pytest.raises(CannotCheck, match="x does not exist"):
        read_json_object(tmp_path / "absent", "x")
    with pytest.raises(CannotCheck, match="x is not a regular file"):
        read_json_object(tmp_path, "x")
    with pytest.raises(CannotCheck, match=r"x cannot be read|x does not exist"):
        read_json_object(Path("a\0b"), "x")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CannotCheck, match="is not a regular file"):
        read_json_object(tmp_path / "pipe", "x")


TEXT = """{
  "a": 1,
  "b": {"c": [10,
    {"d/e": null, "f~g": [ ]}
  ]},
  "twice": 1,
  "twice":
     2,
  "parent": {"x": 1},
  "parent": {"y": "}{,:\\"["},
  "\\u00e9": true, "": 0
}
"""


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ("", 1),
        ("/a", 2),
        ("/b", 3),
        ("/b/c/0", 3),
        ("/b/c/1", 4),
        ("/b/c/1/d~1e", 4),
        ("/b/c/1/f~0g", 4),
        ("/twice", 8),
        ("/parent/x", None),
        ("/parent/y", 10),
        ("/é", 11),
        ("/", 11),
        ("/absent", None),
        ("/a/deeper", None),
        ("/b/c/2", None),
        ("/b/c/-1", None),
        ("/parent/y/0", None),
    ],
)
def test_line_of(pointer: str, line: int | None) -> None:
    assert line_of(TEXT, pointer) == line


@pytest.mark.parametrize(
    "text", ["", "{", '{"a"', '{"a": ', '{"a": 1', "{]", '{"a" 1}', "[" * 100_000, '{"a":' * 10_000]
)
def test_line_of_in_broken_text_is_no_error(text: str) -> None:
    assert line_of(text, "/zz/0") is None


def test_line_of_every_value_agrees_with_a_line_by_line_layout() -> None:
    values = {"a": 1, "b": {"c": [1, 2, {"d": 3}], "e": {}}, "f": [[], [4]], "g": "x"}
    text = json.dumps(values, indent=1)

    def walk(value: Any, pointer: str) -> list[str]:
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [pointer, *(found for key, child in inner for found in walk(child, f"{pointer}/{key}"))]

    lines = [line_of(text, pointer) for pointer in walk(values, "")]
    closing = [n for n, line in enumerate(text.split("\n"), 1) if line.strip(" ,") in "]}"]
    assert lines == [n for n in range(1, text.count("\n") + 2) if n not in closing]


def test_line_of_a_large_text_is_quick() -> None:
    text = json.dumps({"vocab": {f"token{i}": i for i in range(200_000)}, "last": 1}, indent=0)
    start = time.process_time()
    assert line_of(text, "/last") == 200_004
    assert line_of(text, "/vocab/token199999") == 200_002
    assert time.process_time() - start < FOR_EVER


def test_show_is_short_and_plain() -> None:
    assert json_text.show("é\n") == '"\\u00e9\\n"'
    assert len(json_text.show(list(range(1000)))) == 60
