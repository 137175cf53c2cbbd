"""YAML with lines, within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.errors import CannotCheck
from specfix.launch.yaml_file import LIMIT, read_text, read_yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_values_and_lines() -> None:
    (document,) = read_yaml("a: 1\nb:\n  - x\n  - {c: yes}\n", "f.yaml")
    assert document.plain() == {"a": 1, "b": ["x", {"c": True}]}
    second = document.get("b")
    assert second is not None and [item.place.line for item in second.items] == [3, 4]
    assert document.at("b.c") is None and document.at("a.b") is None


def test_merges_and_anchors() -> None:
    (document,) = read_yaml("base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}\n", "f.yaml")
    assert document.plain()["own"] == {"x": 1, "y": 3}


def test_what_is_rendered_elsewhere_is_unknown() -> None:
    (document,) = read_yaml("a: '{{ .Values.x }}'\nb: !Ref thing\nc: plain\n", "f.yaml")
    assert {key: item.unknown() for key, item in document.pairs.items()} == {
        "a": "{{ .Values.x }}",
        "b": "!Ref thing",
        "c": None,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", r"f\.yaml, line \d: not valid YAML"),
        ("a: {{ .Values.x }}\nb: {{\n", r"f\.yaml, line 1: \{\{ \.Values\.x \}\} is a template: render the file first"),
        ("a: *nobody", r"f\.yaml, line 1: not valid YAML"),
        ("a: \x00", "not valid YAML"),
        ("[" * 100_000, "f.yaml is nested too deep|not valid YAML"),
        (BOMB, "holds more than 100,000 values"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(CannotCheck, match=message):
        read_yaml(text, "f.yaml")


def test_nothing_is_constructed() -> None:
    (document,) = read_yaml("a: !!python/object/apply:os.system [touch /nowhere]\n", "f.yaml")
    assert document.plain() == {"a": ["touch /nowhere"]}


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    with pytest.raises(CannotCheck, match="cannot be read"):
        read_text(file)
    file.write_bytes(b"\xff")
    with pytest.raises(CannotCheck, match="is not UTF-8 text"):
        read_text(file)
    file.write_bytes(b"a" * (LIMIT + 1))
    with pytest.raises(CannotCheck, match="more than the 2,000,000 bytes"):
        read_text(file)
    file.write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(file) == "a: 1"
