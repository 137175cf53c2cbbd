"""What is refused of an older RoPE block, read of small sources of the shapes that releases have."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.readers.rope_types import FILE, read_sections, read_type_pairs
from specfix.engines.source.tree import SourceTree

# each test of a block is within a function, which may be within another
FLAT = """
    def patch(block):
        if "rope_type" in block and "type" in block:
            new = block["rope_type"]
            old = block["type"]
            if old != new:
                raise ValueError("two types")
        if block["rope_type"] == "su":
            block["rope_type"] = "longrope"
        elif block["rope_type"] == "mrope":
            assert "mrope_section" in block
            block["rope_type"] = "default"
    """
SPARING = """
    def patch(blocks):
        def one(block):
            if "rope_type" in block and "type" in block:
                new = block["rope_type"]
                old = block["type"]
                if (old == "su" and new == "longrope") or (old == "mrope" and new == "default"):
                    pass
                elif new != old:
                    raise ValueError("two types")
            if block["rope_type"] == "mrope":
                if "mrope_section" not in block:
                    raise ValueError("no section")
                block["rope_type"] = "default"
    """
SPARED = {"su": "longrope", "mrope": "default"}
SECTION = {"mrope": "mrope_section"}


def tree(root: Path, text: str) -> SourceTree:
    (root / FILE).parent.mkdir()
    (root / FILE).write_text(dedent(text))
    return SourceTree(root)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (FLAT, {}),
        (SPARING, SPARED),
        (SPARING.replace('or (old == "mrope" and new == "default")', ""), {"su": "longrope"}),
        (FLAT.replace("raise ValueError", "print"), None),
        (SPARING.replace("raise ValueError", "print"), None),
        (SPARING.replace("pass", "old = new"), SPARED),
        (FLAT.replace("if old != new", "if old != other"), None),
        (SPARING.replace('old == "su"', "old == name"), None),
        (SPARING.replace('old == "su"', 'other == "su"'), None),
        (FLAT.replace(' and "type" in block', ""), None),
        ("", None),
    ],
)
def test_two_types(tmp_path: Path, text: str, pairs: dict[str, str] | None) -> None:
    assert read_type_pairs(tree(tmp_path, text)) == pairs


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        (FLAT, SECTION),
        (SPARING, SECTION),
        (FLAT.replace("assert ", "found = "), {}),
        (SPARING.replace('raise ValueError("no', 'print("no'), {}),
        (SPARING.replace("not in block", "in block"), {}),
        (FLAT.replace('== "mrope"', '!= "mrope"'), {}),
        (FLAT.replace('block["rope_type"] == "mrope"', 'block["type"] == "mrope"'), {}),
        ("", {}),
    ],
)
def test_a_type_that_needs_its_section(tmp_path: Path, text: str, sections: dict[str, str]) -> None:
    assert read_sections(tree(tmp_path, text)) == sections


def test_no_file(tmp_path: Path) -> None:
    assert read_type_pairs(SourceTree(tmp_path)) is None
    assert read_sections(SourceTree(tmp_path)) == {}
