"""Where text goes: colour, width, and what an encoding lacks."""

from __future__ import annotations

import io

import pytest

from specfix.report.listing import table
from specfix.report.page import render
from specfix.report.terminal import Terminal, cells, clip, printable, write


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "72")


def test_a_terminal_has_its_width_and_colour() -> None:
    assert Terminal.of(Screen()) == Terminal(72, True)


def test_a_pipe_has_neither() -> None:
    assert Terminal.of(io.StringIO()) == Terminal(100, False)


@pytest.mark.parametrize(
    ("name", "value", "color"), [("NO_COLOR", "1", False), ("NO_COLOR", "", True), ("TERM", "dumb", False)]
)
def test_colour_can_be_turned_off(name: str, value: str, color: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert Terminal.of(Screen()).color is color


@pytest.mark.parametrize("char", ["\x1b", "\x07", "\r", "\n", "\x7f", "\x9b", "\u202e", "\u2066", "\ud800", "\u2028"])
def test_no_control_character_gets_through(char: str) -> None:
    assert printable(f"a{char}é").isprintable()


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("text", ["abcdefgh", "模型模型", "e\u0301" * 8])
def test_clipped_text_fits(text: str, left: bool) -> None:
    for room in range(9):
        assert cells(clip(text, room, left=left)) <= room


def test_what_the_encoding_lacks_is_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii")
    write("模型…\n", stream)
    assert raw.getvalue() == b"\\u6a21\\u578b\\u2026\n"


def test_a_table_wraps_its_last_column() -> None:
    rows = [("A", "first", "one two three four five six seven eight"), ("BB", "x", "short")]
    assert table(rows, Terminal(40)) == (
        "A   first  one two three four five six\n           seven eight\nBB  x      short\n"
    )


def test_a_page_is_itself_in_a_pipe_and_formatted_on_a_terminal() -> None:
    page = "# POS001\n\nSome `code`.\n"
    assert render(page, Terminal()) == page
    assert "\x1b[" in render(page, Terminal(60, True))
