"""Where text goes: its width, whether it may be coloured, and strings from configs made harmless."""

from __future__ import annotations

import io
import os
import shutil
import textwrap
import unicodedata
from typing import TextIO

from specfix.record import record

PIPED_WIDTH = 100
READABLE_WIDTH = 110  # prose is not wrapped wider than this on a wide terminal

STYLES = {  # ECMA-48 "select graphic rendition"
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "good": "1;32",
    "strong": "1",
    "frame": "34",
    "quiet": "2",
}


@record(frozen=True)
class Terminal:
    """``width`` counts cells of a line; ``color`` says whether to paint."""

    width: int = PIPED_WIDTH
    color: bool = False

    @classmethod
    def of(cls, stream: TextIO) -> Terminal:
        """What ``stream`` can show: colour on a terminal only, and not where NO_COLOR is set."""
        if not stream.isatty():
            return cls()
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        return cls(max(40, shutil.get_terminal_size().columns), not plain)

    def paint(self, style: str, text: str) -> str:
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if self.color and text else text

    def wrap(self, text: str, indent: str = "", first: str | None = None) -> list[str]:
        """Lines of prose, made harmless; ``first`` is what the first one starts with (``indent`` if None)."""
        return textwrap.wrap(
            printable(text),
            min(self.width, READABLE_WIDTH),
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_long_words=False,  # a path or a URL stays in one piece, to be copied
            break_on_hyphens=False,
        )


def printable(text: str) -> str:
    r"""``text`` with control and bidirectional characters shown as escapes (``\x1b``), not obeyed."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escaped(char) for char in text)


def escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def cells(text: str) -> int:
    """Columns that ``text`` takes up: two for a wide character, none for one that combines."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def clip(text: str, room: int, *, left: bool = False) -> str:
    """``text`` cut to ``room`` columns at its end (or its start), with a mark where something is missing."""
    if room <= 0:
        return ""
    if cells(text) <= room:
        return text
    kept = text[-room:] if left else text[:room]
    while kept and cells(kept) >= room:
        kept = kept[1:] if left else kept[:-1]
    return "…" + kept if left else kept + "…"


def write(text: str, stream: TextIO) -> None:
    """Write it all at once. What the stream's encoding lacks comes out as an escape, not as an exception."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    stream.write(text)
    stream.flush()
