"""Words and variables put into the commands of a shell, and taken out of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise

from specfix.launch.words import Span, Word
from specfix.repair.edit.written import CannotEdit, splice

BLANKS = re.compile(r"(?:[ \t]|\\\r?\n)+")
BEFORE = re.compile(r"(?:[ \t]|\\\r?\n)*\Z")
GOES_ON = ("\\", "&&", "||", "|", "(")  # a line that ends so goes on in the next one


def ground(word: Word) -> Span | None:
    """Where a word of a shell stands in its script; None for one that is no word of a shell."""
    span = word.span
    while span is not None and span.kind in ("part", "$$") and span.home is not None:
        span = span.home.span
    return span if span is not None and span.kind == "sh" else None


def outer_text(text: str, span: Span) -> str:
    return text if span.home is None else span.home.text


def insert_words(text: str, group: Sequence[Word], words: Sequence[str]) -> str:
    """The text with more words behind those of ``group``, set apart as that is."""
    spans = [span for word in group if (span := ground(word))]
    outer = outer_text(text, spans[0])
    gap = gap_before(outer, spans[0].start)
    if "\n" not in gap or gap.count("\n") > 1:
        gap = " "
    at = max(span.end for span in spans)
    return splice(text, spans[0].home, at, at, gap + " ".join(map(shlex.quote, words)))


def gap_before(outer: str, at: int) -> str:
    """What sets a word apart from the one before it."""
    match = BEFORE.search(outer, 0, at)
    return match[0] if match and match[0] else " "


def remove_words(text: str, words: Sequence[Word]) -> str:
    """The text without some neighbours, and what set the first apart."""
    spans = [span for word in words if (span := ground(word))]
    if len(spans) < len(words) or len({id(span.home) for span in spans}) > 1:
        raise CannotEdit("it does not stand there as it is")
    outer = outer_text(text, spans[0])
    for one, other in pairwise(spans):
        if not BLANKS.fullmatch(outer[one.end : other.start]):
            raise CannotEdit("something stands between an option and its value")
    start = spans[0].start - len(gap_before(outer, spans[0].start))
    return splice(text, spans[0].home, max(start, 0), spans[-1].end, "")


def export(text: str, argument: Word, name: str, value: str) -> str:
    """The text with a line before the command that sets a variable; ``value`` as it is to be written."""
    span = ground(argument)
    if span is None:
        raise CannotEdit("it stands in no script")
    outer = outer_text(text, span)
    at = outer.rfind("\n", 0, span.start) + 1
    while outer[:at].rstrip("\r\n").endswith("\\"):
        at = outer.rfind("\n", 0, at - 1) + 1
    above = [line for line in outer[:at].splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if above and above[-1].rstrip().endswith(GOES_ON):
        raise CannotEdit(f"the command goes on from the line above ({above[-1].strip()})")
    line = outer[at:]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    eol = "\r\n" if "\r\n" in outer else "\n"
    return splice(text, span.home, at, at, f"{indent}export {name}={value}{eol}")


def container_variable(text: str, image: Word, assignment: str) -> str:
    """The text with ``-e NAME=value`` before the image of a ``docker run``."""
    span = ground(image)
    if span is None:
        raise CannotEdit("the image does not stand there as it is")
    gap = gap_before(outer_text(text, span), span.start)
    return splice(text, span.home, span.start, span.start, f"-e {shlex.quote(assignment)}{gap}")


def remove_variable(text: str, value: Word) -> str:
    """The text without ``NAME=value``: an option of ``docker run``, an export, or what stands before a command."""
    span = ground(value)
    if span is None:
        raise CannotEdit("it does not stand there as it is")
    outer = outer_text(text, span)
    option = re.search(r"(?:[ \t]|\\\r?\n)+(?:-e|--env)(?:=|(?:[ \t]|\\\r?\n)*)\Z", outer[: span.start])
    if option:
        return splice(text, span.home, option.start(), span.end, "")
    start = outer.rfind("\n", 0, span.start) + 1
    end = outer.find("\n", span.end)
    end = len(outer) if end < 0 else end + 1
    alone = re.fullmatch(r"[ \t]*(?:export[ \t]+)?", outer[start : span.start])
    if alone and not outer[span.end : end].strip():
        return splice(text, span.home, start, end, "")
    if re.search(r"\bexport[ \t]+\S.*\Z", outer[start : span.start]):
        return remove_words(text, [value])
    behind = BLANKS.match(outer, span.end)
    return splice(text, span.home, span.start, behind.end() if behind else span.end, "")
