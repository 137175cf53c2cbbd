"""A shell's script in commands, and these in words, with the lines on which they stand. Only variables are expanded."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from specfix.deployment import Location
from specfix.errors import CannotCheck
from specfix.launch.expansions import QUOTED_ARRAY, written_expansion
from specfix.launch.fields import Fields
from specfix.launch.substitution import Substitution, Value
from specfix.launch.words import Span, Word
from specfix.record import record

ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
REDIRECTION = re.compile(r"[<>]+&?-?")
ANSI = re.compile(r"\$'(?P<inside>(?:\\.|[^'\\])*)'", re.DOTALL)
ESCAPE = re.compile(r"\\.", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "?": "?"}
# before a command, and no part of it
LEADING = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec", "nohup", "command"}
)
EXPORTS = frozenset({"export", "declare", "readonly", "local", "typeset"})
ENDS = re.compile(r";;|&&|\|\||\|&|[;&|()\n]")
RUN = re.compile(r"[^ \t\r\n;&|()<>\\'\"$`]+")  # characters that stand for themselves
LIMIT = 200_000  # characters of a script
PARTS_LIMIT = 50_000  # words of it, and what stands between commands


def split(text: str, file: str, first_line: int = 1, home: Word | None = None) -> list[Word]:
    """The words of a text that is split as a shell does, and that no shell sees: ``$`` is nothing special in it.

    Raises CannotCheck for a quote that is not closed, and for a text of unlikely length.
    """
    return [word for found in Splitter(text, file, first_line, None, home).commands() for word in found.words]


@record(frozen=True)
class Found:
    """The words between two separators, the second of which is ``end``."""

    words: list[Word]
    end: str


class Splitter:
    """One pass over a script. What variables hold when a word is made, and other expansions, are asked of ``value`` and
    ``constant`` (see Substitution); where there is no ``value`` at all, nothing is expanded."""

    def __init__(
        self,
        text: str,
        file: str,
        first_line: int,
        value: Value | None,
        home: Word | None = None,
        constant: Callable[[str], str | None] = lambda written: None,
    ) -> None:
        if len(text) > LIMIT:
            raise CannotCheck(
                f"{file} holds a script of {len(text):,} characters, more than the {LIMIT:,} that are read"
            )
        self.text, self.file, self.line, self.home = text, file, first_line, home
        self.substitution = None if value is None else Substitution(file, value, constant)
        self.lines = home.lines if home else ()
        self.offsets = [offset for offset, _ in self.lines]
        self.at = self.parts = 0

    def commands(self) -> Iterator[Found]:
        words: list[Word] = []
        heredocs: list[str] = []
        assigns = True  # whether NAME=value would set a variable here
        while self.at < len(self.text):
            char = self.text[self.at]
            self.parts += char not in " \t\r\n\\"
            if self.parts > PARTS_LIMIT:
                raise CannotCheck(f"{self.file} holds a script of more than {PARTS_LIMIT:,} words")
            separator = ENDS.match(self.text, self.at)
            if separator:
                end = separator[0]
                self.skip(len(end))
                yield Found(words, end)
                words, assigns = [], True
                while end == "\n" and heredocs:
                    self.skip_heredoc(heredocs.pop(0))
            elif char in " \t\r":
                self.skip(1)
            elif self.text.startswith("\\\n", self.at):
                self.skip(2)
            elif char == "#" and self.substitution:  # Compose knows no comments
                self.skip(len(self.rest_of_line()))
            elif self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at):
                self.skip(3 if self.text.startswith("<<-", self.at) else 2)
                self.skip_blanks()
                heredocs.append("".join(word.text for word in self.word()))
            elif char in "<>":
                redirection = REDIRECTION.match(self.text, self.at)
                self.skip(len(redirection[0]) if redirection else 1)
                self.skip_blanks()
                if self.at < len(self.text) and self.text[self.at] not in "\n;":
                    self.word()  # where it leads
            else:
                made = self.word(assigns)
                assigns = assigns and all(sets(word.text) for word in made)
                number = len(made) == 1 and made[0].text.isdigit()
                if not (number and self.text[self.at : self.at + 1] in ("<", ">")):  # 2>&1
                    words += made
        if words:
            yield Found(words, "\n")

    def skip(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count

    def skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.skip(1)

    def here(self) -> Location:
        """The place of what comes next."""
        if self.lines:
            return Location(self.file, "", self.lines[max(bisect_right(self.offsets, self.at) - 1, 0)][1])
        return Location(self.file, "", self.line)

    def rest_of_line(self) -> str:
        end = self.text.find("\n", self.at)
        return self.text[self.at : end if end >= 0 else None]

    def skip_heredoc(self, mark: str) -> None:
        while self.at < len(self.text):
            line = self.rest_of_line()
            self.skip(len(line) + 1)
            if line.strip() == mark:
                return

    def word(self, assigns: bool = False) -> list[Word]:
        """The word that begins here; what a variable holds may be several, or none, but for one that is assigned."""
        place, start = self.here(), self.at
        fields = Fields(place)
        head = ASSIGNED.match(self.text, start) if assigns and self.substitution else None
        if head and self.text.startswith("(", head.end()):
            self.skip(len(head[0]))
            return [Word(head[0], place, array=tuple(self.array(place)))]
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r\n;&|()<>":
                break
            if char == "\\":
                if not self.text.startswith("\\\n", self.at):
                    fields.add(self.text[self.at + 1 : self.at + 2])
                self.skip(2)
            elif char == "'":
                fields.add(self.quoted("'"))
                fields.there = True
            elif self.substitution and (ansi := ANSI.match(self.text, self.at)):
                self.skip(len(ansi[0]))
                put_ansi(ansi, fields)
            elif char == "$" and self.substitution and self.text.startswith('"', self.at + 1):
                self.skip(1)  # $"…" is "…", translated
            elif char == '"':
                if self.substitution and (array := QUOTED_ARRAY.match(self.text, self.at)):
                    self.skip(len(array[0]))
                    self.substitution.put_array(array["name"], fields)
                else:
                    self.skip(1)
                    self.double_quoted(fields, place)
                    fields.there = True
            elif char in "$`" and self.substitution:
                self.substitution.put(self.expansion(), fields, quoted=head is not None)
            else:
                run = RUN.match(self.text, self.at)
                fields.add(run[0] if run else char)
                self.skip(len(run[0]) if run else 1)
        fields.end(None if fields.broken else Span(start, self.at, "sh", self.home))
        return fields.words

    def array(self, place: Location) -> Iterator[Word]:
        """The words between brackets."""
        self.skip(1)
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == ")":
                self.skip(1)
                return
            if char in " \t\r\n;&|(<>":
                self.skip(1)
            elif self.text.startswith("\\\n", self.at):
                self.skip(2)
            elif char == "#":
                self.skip(len(self.rest_of_line()))
            else:
                self.parts += 1
                yield from self.word()
        raise CannotCheck(f"{place.file}, line {place.line}: a bracket is not closed")

    def quoted(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise CannotCheck(f"{self.file}, line {self.here().line}: a quote is not closed")
        inside = self.text[self.at + 1 : end]
        self.skip(end + 1 - self.at)
        return inside

    def double_quoted(self, fields: Fields, place: Location) -> None:
        special = ("$", "`", '"', "\\", "\n") if self.substitution else ('"', "\\", "\n")
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in special:
                if self.text[self.at + 1] != "\n":
                    fields.add(self.text[self.at + 1])
                self.skip(2)
            elif char in "$`" and self.substitution:
                self.substitution.put(self.expansion(), fields, quoted=True)
            else:
                fields.add(char)
                self.skip(1)
        if self.at >= len(self.text):
            raise CannotCheck(f"{place.file}, line {place.line}: a quote is not closed")
        self.skip(1)

    def expansion(self) -> str:
        """The whole of what stands at a ``$`` or a backquote."""
        written = written_expansion(self.text, self.at)
        self.skip(len(written))
        return written


def put_ansi(match: re.Match[str], fields: Fields) -> None:
    """``$'…'``: text with escapes."""
    if all(escape[1] in ESCAPES for escape in ESCAPE.findall(match["inside"])):
        fields.add(ESCAPE.sub(lambda escape: ESCAPES[escape[0][1]], match["inside"]))
    else:
        fields.add_unknown(match[0])
    fields.there = fields.broken = True


def sets(text: str) -> bool:
    """Whether a variable may be set after this word."""
    return text in LEADING or text in EXPORTS or text.startswith("-") or ASSIGNED.match(text) is not None
