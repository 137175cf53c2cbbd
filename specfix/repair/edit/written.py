"""Write another text where a word stands, as the word is written there: in quotes, in a block, in a script within one.

Each layer between the file and the word (``Span.kind``) is taken apart into pieces, and only those that differ are
written anew. YAML libraries that keep comments write long lines, quotes and line ends their own way, and know nothing
of the shell inside.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import yaml

from specfix.errors import CannotCheck
from specfix.launch.expansions import written_expansion
from specfix.launch.words import Word

PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")  # an anchor, a tag
SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)  # needs no quotes in a shell
FOLD = re.compile(r"[ \t]*(?:\r?\n[ \t]*)+")
ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\r?\n[ \t]*)|(.))", re.DOTALL)
ESCAPES: dict[str, str] = yaml.scanner.Scanner.ESCAPE_REPLACEMENTS


class CannotEdit(CannotCheck):
    """What the message says has to be written by hand."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text, from ``start`` to ``end`` of what is written for it. Those of one ``run`` stand in the same
    quotes. A ``fixed`` one is made elsewhere, by a variable."""

    text: str
    start: int
    end: int
    run: int = 0
    quote: str = ""
    fixed: bool = False


def put(text: str, word: Word, new: str, differs: tuple[int, int] | None = None) -> str:
    """The file ``text`` with ``new`` where ``word`` stands; ``differs``: what of the word it takes the place of, where
    that is known. Raises CannotEdit."""
    span = word.span
    if span is None:
        raise CannotEdit(f"{shown(word)} does not stand there as it is")
    outer = text if span.home is None else span.home.text
    old = outer[span.start : span.end]
    raw = rewritten(old, span.kind, word.text, new, differs)
    first, last = differing(old, raw)
    changed = raw[first : len(raw) - (len(old) - last)]
    return splice(text, span.home, span.start + first, span.start + last, changed)


def splice(text: str, home: Word | None, start: int, end: int, new: str) -> str:
    """The file ``text`` with ``new`` for what stands from ``start`` to ``end`` in it, or in the text of a word."""
    outer = text if home is None else home.text
    changed = outer[:start] + new + outer[end:]
    return changed if home is None else put(text, home, changed, (start, end))


def shown(word: Word) -> str:
    return word.text if len(word.text) <= 60 else f"{word.text[:57]}…"


def rewritten(raw: str, kind: str, old: str, new: str, differs: tuple[int, int] | None = None) -> str:
    """``raw``, which is how ``old`` is written, with the least change that makes it ``new``."""
    if old == new:
        return raw
    if kind == "part":
        return new
    if kind == "$$":
        return new.replace("$", "$$")
    pieces = [piece for piece in taken_apart(raw, kind, old) if piece.text]
    first, last = differs or differing(old, new)
    middle = new[first : len(new) - (len(old) - last)]
    at, touched, before = 0, [], None
    for piece in pieces:
        end = at + len(piece.text)
        if end <= first:
            before = piece
        elif at < last or (first == last and at < first):
            touched.append(piece)
        at = end
    fixed = next((piece for piece in touched if piece.fixed), None)
    if fixed is not None:
        raise CannotEdit(f"{fixed.text!r} comes from {raw[fixed.start : fixed.end]}")
    result = None
    bare = (touched or [before or Piece("", 0, 0)])[0].quote == ""
    if kind == "sh" and bare and not SAFE.fullmatch(middle or "-") and "=" not in old[:first]:
        pass  # a word of its own, which is better quoted as a whole
    elif touched and len({piece.run for piece in touched}) == 1:
        encoded = encode(middle, kind, touched[0].quote, raw)
        result = encoded if encoded is None else raw[: touched[0].start] + encoded + raw[touched[-1].end :]
    elif not touched and (before or pieces) and not (before and before.fixed):
        near = before or pieces[0]
        place = near.end if before else near.start
        encoded = encode(middle, kind, near.quote, raw)
        result = encoded if encoded is None else raw[:place] + encoded + raw[place:]
    if result is not None and (kind != "plain" or plain(result, new, raw)):
        return result
    if any(piece.fixed for piece in pieces):
        raise CannotEdit(f"{raw} holds what is known only where it runs")
    return quoted(raw, kind, new)


def differing(old: str, new: str) -> tuple[int, int]:
    """From where to where ``old`` differs from ``new``."""
    limit = min(len(old), len(new))
    first = next((index for index in range(limit) if old[index] != new[index]), limit)
    same = 0
    while same < limit - first and old[len(old) - 1 - same] == new[len(new) - 1 - same]:
        same += 1
    return first, len(old) - same


def taken_apart(raw: str, kind: str, text: str) -> list[Piece]:
    """What each part of ``text`` is written as in ``raw``. Raises CannotEdit where that cannot be told."""
    ways: dict[str, Any] = {"sh": shell, '"': double, "'": single, "|": literal, ">": folded, "plain": folded}
    if kind not in ways:
        raise CannotEdit(f"{raw} is written in a way that is not known")
    if kind in ("|", ">", "plain"):
        pieces = ways[kind](raw, text, kind == "plain")
    else:
        pieces = aligned(list(ways[kind](raw)), text)
    if pieces is None or "".join(piece.text for piece in pieces) != text:
        raise CannotEdit(f"{raw} does not say {text!r} as it stands")
    return list(pieces)


def aligned(pieces: list[Piece], text: str) -> list[Piece] | None:
    """The pieces with the text that variables made."""
    if not any(piece.fixed for piece in pieces):
        return pieces
    match = re.fullmatch("".join("(.*?)" if piece.fixed else re.escape(piece.text) for piece in pieces), text, re.S)
    if match is None:
        return None
    groups = iter(match.groups())
    return [replace(piece, text=next(groups)) if piece.fixed else piece for piece in pieces]


def shell(raw: str) -> Iterator[Piece]:
    """One word of a shell."""
    at, run, quote = 0, 0, ""
    while at < len(raw):
        char = raw[at]
        if char == quote or (not quote and char in "'\""):
            at, run, quote = at + 1, run + 1, "" if quote else char
        elif quote == "'":
            yield Piece(char, at, at + 1, run, quote)
            at += 1
        elif char == "\\" and (not quote or raw[at + 1 : at + 2] in ("$", "`", '"', "\\", "\n")):
            if raw[at + 1 : at + 2] != "\n":
                yield Piece(raw[at + 1 : at + 2], at, at + 2, run, quote)
            at += 2
        elif char in "$`" and (written := written_expansion(raw, at)) != "$":
            yield Piece("", at, at + len(written), run, quote, fixed=True)
            at += len(written)
        else:
            yield Piece(char, at, at + 1, run, quote)
            at += 1


def properties(raw: str) -> str:
    """What a YAML scalar has before its text."""
    found = PROPERTIES.match(raw)
    return found[0] if found else ""


def double(raw: str) -> Iterator[Piece]:
    """A YAML scalar in double quotes."""
    at = len(properties(raw)) + 1
    while at < len(raw) - 1:
        if match := ESCAPE.match(raw, at):
            code = match[1] or match[2] or match[3]
            said = chr(int(code, 16)) if code else "" if match[4] else ESCAPES.get(match[5], match[5])
            yield Piece(said, at, match.end())
            at = match.end()
        elif match := FOLD.match(raw, at):
            yield Piece("\n" * (match[0].count("\n") - 1) or " ", at, match.end(), fixed=True)
            at = match.end()
        else:
            yield Piece(raw[at], at, at + 1)
            at += 1


def single(raw: str) -> Iterator[Piece]:
    """A YAML scalar in single quotes."""
    at = len(properties(raw)) + 1
    while at < len(raw) - 1:
        if raw.startswith("''", at):
            yield Piece("'", at, at + 2)
            at += 2
        elif match := FOLD.match(raw, at):
            yield Piece("\n" * (match[0].count("\n") - 1) or " ", at, match.end(), fixed=True)
            at = match.end()
        else:
            yield Piece(raw[at], at, at + 1)
            at += 1


def literal(raw: str, text: str, _: bool) -> list[Piece] | None:
    """A YAML block that keeps its lines."""
    start = raw.find("\n") + 1
    body = raw[start:]
    margin = margin_of(raw)
    pieces: list[Piece] = []
    for line in body.splitlines(keepends=True):
        content = line.rstrip("\r\n")
        blank = min(len(content) - len(content.lstrip(" ")), margin)
        if pieces:
            pieces[-1] = replace(pieces[-1], end=start + blank)  # a line's end holds the next one's margin
        pieces += [Piece(content[at], start + at, start + at + 1) for at in range(blank, len(content))]
        if line != content:
            pieces.append(Piece("\n", start + len(content), start + len(line)))
        start += len(line)
    told = "".join(piece.text for piece in pieces)
    return pieces[: len(text)] if told.startswith(text) else None


def margin_of(raw: str) -> int:
    """How far a block's text is set in."""
    first = next((line for line in raw.splitlines()[1:] if line.strip()), "")
    return len(first) - len(first.lstrip(" "))


def folded(raw: str, text: str, plain: bool) -> list[Piece] | None:
    """A YAML block or plain scalar whose lines are put together."""
    start = len(properties(raw)) if plain else raw.find("\n") + 1
    pieces: list[Piece] = []
    end, at = start, 0
    for line in raw[start:].splitlines(keepends=True):
        core = line.strip()
        begin = start + line.find(core) if core else start
        blanks = len(text) - at - len(text[at:].lstrip(" \n"))
        if core:
            for index in range(blanks):
                pieces.append(Piece(text[at + index], end, begin, fixed=True))
            at += blanks
            if not text.startswith(core, at):
                return None
            pieces += [Piece(char, begin + index, begin + index + 1) for index, char in enumerate(core)]
            at, end = at + len(core), begin + len(core)
        start += len(line)
    pieces += [Piece(char, end, len(raw), fixed=True) for char in text[at:] if char in " \n"]
    return pieces


def encode(text: str, kind: str, quote: str, raw: str) -> str | None:
    """``text`` as it is written in the midst of ``raw``; None where it cannot be in these quotes."""
    if kind == "sh":
        if quote == "'":
            return text.replace("'", "'\\''")
        if quote == '"':
            return re.sub(r'[\\"$`]', r"\\\g<0>", text)
        return text if not text or SAFE.fullmatch(text) else shlex.quote(text)
    if kind == '"':
        return json.dumps(text, ensure_ascii=False)[1:-1]
    if kind == "|":
        eol = "\r\n" if "\r\n" in raw else "\n"
        return text.replace("\n", eol + " " * margin_of(raw))
    if "\n" in text or not text.isprintable():
        return None
    return text.replace("'", "''") if kind == "'" else text


def plain(result: str, text: str, raw: str) -> bool:
    """Whether YAML reads ``result`` as ``text``, of the kind that ``raw`` is or a string."""
    was = scalar(raw)
    now = scalar(result, flow=was is not None)
    was = was or scalar(raw, flow=False)
    return now is not None and now.value == text and now.tag in {was.tag if was else "", "tag:yaml.org,2002:str"}


def scalar(raw: str, flow: bool = True) -> yaml.ScalarNode | None:
    """A plain scalar, as it would be read in a list: in brackets, where less can stand, or in lines of its own."""
    before, after = ("[", "\n]") if flow else ("- ", "\n")
    try:
        node = yaml.compose(f"{before}{raw}{after}", Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    inner = node.value[0] if isinstance(node, yaml.SequenceNode) and len(node.value) == 1 else None
    return inner if isinstance(inner, yaml.ScalarNode) and inner.style is None else None


def quoted(raw: str, kind: str, text: str) -> str:
    """The whole of a word written anew. Raises CannotEdit for a block."""
    if kind == "sh":
        return shlex.quote(text)
    if kind in ("|", ">"):
        raise CannotEdit("a block of text would have to be written anew")
    return properties(raw) + yaml_text(text)


def yaml_text(text: str, quote: str = "'") -> str:
    """``text`` as a quoted YAML scalar."""
    if quote == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False)
