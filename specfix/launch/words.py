"""The words of a shell's commands, with the lines on which they stand. Nothing is expanded but variables that the
script itself sets to plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from specfix.deployment import Location
from specfix.errors import CannotCheck

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.ASCII | re.DOTALL)
COMMAND_LINE = "command line"
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
    variables: dict[str, str | None] = dict(known or {})
    exported: dict[str, Word] = {}
    for found in _Splitter(text, file, first_line, variables).commands():
        words = list(dropwhile(lambda word: word.text in LEADING, found))
        exports = bool(words) and words[0].text in EXPORTS
        env, words = assignments(words[1:] if exports else words)
        if words and not exports:
            yield Command(tuple(words), {**exported, **env})
            continue
        for name, word in env.items():
            variables[name] = None if word.unknown else word.text
            if exports or name in exported:
                exported[name] = word
        for word in words if exports else ():  # export NAME
            if word.text in variables:
                value = variables[word.text]
                exported[word.text] = Word(value or "", word.place, None if value is not None else f"${word.text}")


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
                self.skip(len(re.match(r"[<>]+&?-?", self.text[self.at :])[0]))  # type: ignore[index]
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
        return self.text[self.at :].partition("\n")[0]

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
                self.expansion(parts, unknown)
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

    def expansion(self, parts: list[str], unknown: list[str]) -> None:
        """What stands at a ``$`` or a backquote: a variable that the script set, else something unknown."""
        written = self.written()
        self.skip(len(written))
        name = written.removeprefix("${").removesuffix("}") if written.startswith("${") else written[1:]
        value = self.variables.get(name) if NAME.fullmatch(name) else None
        if written == "$":
            parts.append("$")
        elif value is not None:
            parts.append(value)
        else:
            parts.append(written)
            unknown.append(written)

    def written(self) -> str:
        """The whole of an expansion: ``$NAME``, ``$1``, ``${…}``, ``$(…)``, a command in backquotes."""
        rest = self.text[self.at :]
        if rest[0] == "`":
            end = rest.find("`", 1)
            return rest[: end + 1] if end > 0 else rest
        pairs = {"{": "}", "(": ")"}
        if rest[1:2] in pairs:
            depth = 0
            for index, char in enumerate(rest[1:], 1):
                depth += (char == rest[1]) - (char == pairs[rest[1]])
                if not depth:
                    return rest[: index + 1]
            return rest
        match = re.match(r"\$(?:[A-Za-z_]\w*|[\d@*#?$!-])", rest, re.ASCII)
        return match[0] if match else "$"
