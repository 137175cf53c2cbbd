"""The words of a shell's commands, with the lines on which they stand. Nothing is expanded but variables that the
script itself sets to plain text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from specfix.deployment import Location
from specfix.errors import CannotCheck

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
SET = re.compile(r"(?:^|(?<=[\s;&|({]))(?P<name>[A-Za-z_]\w*)(?P<added>\+?)=", re.ASCII | re.MULTILINE)
LOOP = re.compile(r"\b(?:for|select)\s+(?P<name>[A-Za-z_]\w*)\b", re.ASCII)
READ = re.compile(r"\b(?:read|mapfile|readarray|getopts)\b(?P<names>[^\n;&|<]*)", re.ASCII)
SOURCED = re.compile(r"(?:^|[\n;&|])[ \t]*(?:source|\.)[ \t]+\S", re.ASCII)
ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.ASCII | re.DOTALL)
COMMAND_LINE = "command line"
REDIRECTION = re.compile(r"[<>]+&?-?")
PAIRS = {"{": "}", "(": ")"}
BRACKETS = {"{": re.compile(r"[{}]"), "(": re.compile(r"[()]")}
EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|[\d@*#?$!-])", re.ASCII)
ENDS = (";;", "&&", "||", "|&", ";", "&", "|", "(", ")", "\n")
# before a command, and no part of it
LEADING = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec", "nohup", "command"}
)
EXPORTS = frozenset({"export", "declare", "readonly", "local"})
LIMIT = 1_000_000  # characters of a script


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command. ``unknown`` is the part of it that is known only where it runs (``$MAX_LEN``), and
    ``text`` then holds it as it is written."""

    text: str
    place: Location = field(default=Location(COMMAND_LINE))
    unknown: str | None = None

    def part(self, text: str) -> Word:
        """A part of this word."""
        unknown = self.unknown if self.unknown and self.unknown in text else None
        return replace(self, text=text, unknown=unknown)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a script: the variables set before it, its words."""

    words: tuple[Word, ...]
    env: Mapping[str, Word]


def commands(text: str, file: str, first_line: int = 1, known: Mapping[str, str] | None = None) -> Iterator[Command]:
    """The commands of a script, whatever would make them run or not. ``known`` are variables that are set before.

    Raises CannotCheck for a quote that is not closed, and for a script of unlikely length.
    """
    if len(text) > LIMIT:
        raise CannotCheck(f"{file} holds a script of {len(text):,} characters, more than the {LIMIT:,} that are read")
    changing = fickle(text)
    variables: dict[str, str | None] = {name: value for name, value in (known or {}).items() if name not in changing}
    exported: dict[str, Word] = {}
    for found in _Splitter(text, file, first_line, variables).commands():
        words = list(dropwhile(lambda word: word.text in LEADING, found))
        exports = bool(words) and words[0].text in EXPORTS
        env, words = assignments(words[1:] if exports else words)
        if words and not exports:
            yield Command(tuple(words), {**exported, **env})
            continue
        for name, word in env.items():
            variables[name] = None if word.unknown or name in changing else word.text
            if exports or name in exported:
                exported[name] = word
        for word in words if exports else ():  # export NAME
            if word.text in variables:
                value = variables[word.text]
                exported[word.text] = Word(value or "", word.place, None if value is not None else f"${word.text}")


def fickle(text: str) -> frozenset[str]:
    """Variables whose value hangs on the way that the script takes: set more than once, added to, or set by a loop, by
    ``read`` or by a file that is sourced."""
    if SOURCED.search(text):
        return _Everything()
    counts = Counter(match["name"] for match in SET.finditer(text))
    added = {match["name"] for match in SET.finditer(text) if match["added"]}
    by_loop = {match["name"] for match in LOOP.finditer(text)}
    by_read = {name for match in READ.finditer(text) for name in match["names"].split()}
    return frozenset({name for name, count in counts.items() if count > 1} | added | by_loop | by_read)


class _Everything(frozenset[str]):
    def __contains__(self, name: object) -> bool:
        return True


def assignments(words: list[Word]) -> tuple[dict[str, Word], list[Word]]:
    """The ``NAME=value`` that a command begins with, and the rest of it."""
    env: dict[str, Word] = {}
    for index, word in enumerate(words):
        match = ASSIGNMENT.fullmatch(word.text)
        if match is None:
            return env, words[index:]
        env[match["name"]] = word.part(match["value"])
    return env, []


class _Splitter:
    """One pass over a script. ``variables`` is asked when a word is made, so what was set before counts."""

    def __init__(self, text: str, file: str, first_line: int, variables: Mapping[str, str | None]) -> None:
        self.text, self.file, self.line, self.variables = text, file, first_line, variables
        self.at = 0

    def commands(self) -> Iterator[list[Word]]:
        words: list[Word] = []
        heredocs: list[str] = []
        while self.at < len(self.text):
            end = next((each for each in ENDS if self.text.startswith(each, self.at)), None)
            char = self.text[self.at]
            if end:
                self.skip(len(end))
                if words:
                    yield words
                words = []
                while end == "\n" and heredocs:
                    self.skip_heredoc(heredocs.pop(0))
            elif char in " \t\r":
                self.skip(1)
            elif self.text.startswith("\\\n", self.at):
                self.skip(2)
            elif char == "#":
                self.skip(len(self.rest_of_line()))
            elif self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at):
                self.skip(3 if self.text.startswith("<<-", self.at) else 2)
                while self.at < len(self.text) and self.text[self.at] in " \t":
                    self.skip(1)
                heredocs.append(self.word().text)
            elif char in "<>":
                redirection = REDIRECTION.match(self.text, self.at)
                self.skip(len(redirection[0]) if redirection else 1)
                while self.at < len(self.text) and self.text[self.at] in " \t":
                    self.skip(1)
                if self.at < len(self.text) and self.text[self.at] not in "\n;":
                    self.word()  # where it leads
            else:
                word = self.word()
                if not (word.text.isdigit() and self.text[self.at : self.at + 1] in ("<", ">")):  # 2>&1
                    words.append(word)
        if words:
            yield words

    def skip(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count

    def rest_of_line(self) -> str:
        end = self.text.find("\n", self.at)
        return self.text[self.at : end if end >= 0 else None]

    def skip_heredoc(self, mark: str) -> None:
        while self.at < len(self.text):
            line = self.rest_of_line()
            self.skip(len(line) + 1)
            if line.strip() == mark:
                return

    def word(self) -> Word:
        """The word that begins here."""
        place = Location(self.file, "", self.line)
        parts: list[str] = []
        unknown: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r\n;&|()<>":
                break
            if char == "\\":
                if not self.text.startswith("\\\n", self.at):
                    parts.append(self.text[self.at + 1 : self.at + 2])
                self.skip(2)
            elif char == "'":
                parts.append(self.quoted("'"))
            elif char == '"':
                self.skip(1)
                self.double_quoted(parts, unknown, place)
            elif char in "$`":
                self.expansion(parts, unknown, quoted=False)
            else:
                parts.append(char)
                self.skip(1)
        return Word("".join(parts), place, unknown[0] if unknown else None)

    def quoted(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise CannotCheck(f"{self.file}, line {self.line}: a quote is not closed")
        inside = self.text[self.at + 1 : end]
        self.skip(end + 1 - self.at)
        return inside

    def double_quoted(self, parts: list[str], unknown: list[str], place: Location) -> None:
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                if self.text[self.at + 1] != "\n":
                    parts.append(self.text[self.at + 1])
                self.skip(2)
            elif char in "$`":
                self.expansion(parts, unknown)
            else:
                parts.append(char)
                self.skip(1)
        if self.at >= len(self.text):
            raise CannotCheck(f"{place.file}, line {place.line}: a quote is not closed")
        self.skip(1)

    def expansion(self, parts: list[str], unknown: list[str], quoted: bool = True) -> None:
        """What stands at a ``$`` or a backquote: a variable that the script set, else something unknown. A value with
        blanks would be several words where it is not ``quoted``."""
        written = self.written()
        self.skip(len(written))
        name = written.removeprefix("${").removesuffix("}") if written.startswith("${") else written[1:]
        value = self.variables.get(name) if NAME.fullmatch(name) else None
        if written == "$":
            parts.append("$")
        elif value is not None and (quoted or not re.search(r"[\s*?\[]", value)):
            parts.append(value)
        else:
            parts.append(written)
            unknown.append(written)

    def written(self) -> str:
        """The whole of an expansion: ``$NAME``, ``$1``, ``${…}``, ``$(…)``, a command in backquotes."""
        text, start = self.text, self.at
        if text[start] == "`":
            end = text.find("`", start + 1)
            return text[start : end + 1] if end > 0 else text[start:]
        opening = text[start + 1 : start + 2]
        if opening in PAIRS:
            depth = 0
            for match in BRACKETS[opening].finditer(text, start + 1):
                depth += 1 if match[0] == opening else -1
                if not depth:
                    return text[start : match.end()]
            return text[start:]
        named = EXPANSION.match(text, start)
        return named[0] if named else "$"
