"""The words of a shell's commands, with the lines on which they stand. What a variable stands for is asked of whoever
knows; nothing else is expanded."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

from specfix.deployment import Location
from specfix.errors import CannotCheck
from specfix.record import record

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<added>\+?)=(?P<value>.*)", re.ASCII | re.DOTALL)
COMMAND_LINE = "command line"
REDIRECTION = re.compile(r"[<>]+&?-?")
PAIRS = {"{": "}", "(": ")"}
BRACKETS = {"{": re.compile(r"[{}]"), "(": re.compile(r"[()]")}
MARKS = re.compile(r"""\\.|'[^']*'|["()]""", re.DOTALL)  # of a command in an expansion
DEPTH_LIMIT = 30  # of brackets and quotes in it
QUOTED_MARKS = re.compile(r"""\\.|"|\$\(""", re.DOTALL)
ANSI = re.compile(r"\$'(?P<inside>(?:\\.|[^'\\])*)'", re.DOTALL)
ESCAPE = re.compile(r"\\.", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "?": "?"}
EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|[\d@*#?$!-])", re.ASCII)
ARRAY = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)\[[@*]\]\}", re.ASCII)
QUOTED_ARRAY = re.compile(r'"\$\{(?P<name>[A-Za-z_]\w*)\[@\]\}"', re.ASCII)
GUARDED_ARRAY = re.compile(r'\$\{(?P<name>[A-Za-z_]\w*)\[@\]:?\+"\$\{(?P=name)\[@\]\}"\}', re.ASCII)  # for set -u
DEFAULTED = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*):?[-=?].*\}", re.ASCII | re.DOTALL)
BLANK = re.compile(r"[ \t\n]+")
PATTERN = re.compile(r"[*?\[]")
# before a command, and no part of it
LEADING = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec", "nohup", "command"}
)
EXPORTS = frozenset({"export", "declare", "readonly", "local", "typeset"})
ENDS = re.compile(r";;|&&|\|\||\|&|[;&|()\n]")
RUN = re.compile(r"[^ \t\r\n;&|()<>\\'\"$`]+")  # characters that stand for themselves
LIMIT = 200_000  # characters of a script
PARTS_LIMIT = 50_000  # words of it, and what stands between commands
SPENT_LIMIT = 4 * LIMIT  # characters that variables may put in
WORD_COST = 50  # what a word counts there, however short


@record(frozen=True)
class Span:
    """Where a word is written: characters ``start`` to ``end`` of its file, or of the text of another word that holds
    it (``home``). ``kind`` says how: ``sh``, the style of a YAML scalar (``plain``, ``'``, ``"``, ``|``, ``>``), with
    doubled dollars (``$$``), or as it is (``part``)."""

    start: int
    end: int
    kind: str
    home: Word | None = None


@record(frozen=True)
class Word:
    """One word of a command. ``unknown`` is the first part of it that is known only where it runs (``$MAX_LEN``),
    ``others`` are the further ones, and ``text`` then holds them as they are written. ``span`` is None where it does
    not stand in a file as it is. ``maybe``: whether the word is there at all hangs on the way that the script takes.
    ``lines``, where those of the text are not those of the file: (offset, line) of what begins there. ``array``: what
    stands between the brackets of ``NAME=(…)``."""

    text: str
    place: Location = field(default=Location(COMMAND_LINE))
    unknown: str | None = None
    span: Span | None = field(default=None, compare=False)
    others: tuple[str, ...] = ()
    maybe: bool = False
    lines: tuple[tuple[int, int], ...] = ()
    array: tuple[Word, ...] | None = None

    @property
    def unknowns(self) -> tuple[str, ...]:
        """All parts that are unknown."""
        return () if self.unknown is None else (self.unknown, *self.others)

    @property
    def many(self) -> bool:
        """Whether it stands for any number of words: ``"$@"``, an array that is not known."""
        return self.text == self.unknown and (self.text in ("$@", "$*") or ARRAY.fullmatch(self.text) is not None)

    def part(self, text: str) -> Word:
        """The end of this word."""
        span = self.span and Span(len(self.text) - len(text), len(self.text), "part", self)
        unknown = [each for each in self.unknowns if literal(each) in text]
        return replace(self.knowing(unknown), text=text, span=span, lines=(), array=None)

    def knowing(self, unknown: Sequence[str]) -> Word:
        """The same word with these unknown parts."""
        return replace(self, unknown=unknown[0] if unknown else None, others=tuple(unknown[1:]))

    def __str__(self) -> str:
        return self.text


def literal(unknown: str) -> str:
    """An unknown part as it stands in the text, without where it comes from (``$(LEN) from a secretKeyRef``)."""
    return unknown.rpartition(" from a ")[0] if unknown.startswith("$(") and " from a " in unknown else unknown


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


class _Fields:
    """The words that one word as written becomes: a variable may hold several, or none."""

    def __init__(self, place: Location) -> None:
        self.place = place
        self.words: list[Word] = []
        self.broken = False  # more than one word, or not what is written
        self.clear()

    def clear(self) -> None:
        self.parts: list[str] = []
        self.unknown: list[str] = []
        self.maybe = False
        self.there = False  # a quote makes a word of nothing
        self.only: Word | None = None  # what the word is, where it is a whole word of an array

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.there = self.there or bool(text)
        self.only = None

    def add_unknown(self, text: str) -> None:
        self.add(text)
        self.unknown.append(text)

    def add_word(self, word: Word) -> None:
        fresh = not self.there
        self.add(word.text)
        self.unknown += word.unknowns
        self.there, self.maybe = True, self.maybe or word.maybe
        self.only = word if fresh else None

    def end(self, span: Span | None = None) -> None:
        """The word that is being made ends here."""
        if self.only is not None:
            self.words.append(self.only)
        elif self.there:
            first, *others = dict.fromkeys(self.unknown) if self.unknown else (None,)
            text = "".join(self.parts)
            self.words.append(Word(text, self.place, first, span, tuple(each for each in others if each), self.maybe))
        self.broken = True
        self.clear()


class Splitter:
    """One pass over a script. ``value`` says what a variable, or an array (a tuple), holds when a word is made, None
    where it is not known; where there is no ``value`` at all, nothing is expanded. ``constant`` tells of other
    expansions (``$(…)``)."""

    def __init__(
        self,
        text: str,
        file: str,
        first_line: int,
        value: Callable[[str], Word | tuple[Word, ...] | None] | None,
        home: Word | None = None,
        constant: Callable[[str], str | None] = lambda written: None,
    ) -> None:
        if len(text) > LIMIT:
            raise CannotCheck(
                f"{file} holds a script of {len(text):,} characters, more than the {LIMIT:,} that are read"
            )
        self.text, self.file, self.line, self.value, self.home = text, file, first_line, value, home
        self.constant = constant
        self.lines = home.lines if home else ()
        self.offsets = [offset for offset, _ in self.lines]
        self.at = self.spent = self.parts = 0

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
            elif char == "#" and self.value is not None:  # Compose knows no comments
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
        fields = _Fields(place)
        head = ASSIGNED.match(self.text, start) if assigns and self.value is not None else None
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
            elif self.value is not None and (ansi := ANSI.match(self.text, self.at)):
                self.skip(len(ansi[0]))
                put_ansi(ansi, fields)
            elif char == "$" and self.value is not None and self.text.startswith('"', self.at + 1):
                self.skip(1)  # $"…" is "…", translated
            elif char == '"':
                array = QUOTED_ARRAY.match(self.text, self.at) if self.value is not None else None
                if array:
                    self.skip(len(array[0]))
                    self.put_array(array[0][1:-1], array["name"], fields)
                else:
                    self.skip(1)
                    self.double_quoted(fields, place)
                    fields.there = True
            elif char in "$`" and self.value is not None:
                self.expansion(fields, quoted=head is not None)
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

    def double_quoted(self, fields: _Fields, place: Location) -> None:
        special = ("$", "`", '"', "\\", "\n") if self.value is not None else ('"', "\\", "\n")
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in special:
                if self.text[self.at + 1] != "\n":
                    fields.add(self.text[self.at + 1])
                self.skip(2)
            elif char in "$`" and self.value is not None:
                self.expansion(fields, quoted=True)
            else:
                fields.add(char)
                self.skip(1)
        if self.at >= len(self.text):
            raise CannotCheck(f"{place.file}, line {place.line}: a quote is not closed")
        self.skip(1)

    def expansion(self, fields: _Fields, quoted: bool) -> None:
        """What stands at a ``$`` or a backquote: what the script set, else something unknown."""
        written = written_expansion(self.text, self.at)
        self.skip(len(written))
        if written == "$":
            fields.add("$")
        elif array := (GUARDED_ARRAY.fullmatch(written) or ARRAY.fullmatch(written)):
            if quoted or (ARRAY.fullmatch(written) and not self.blankless(array["name"])):
                fields.add_unknown(written)
            else:
                self.put_array(f"${{{array['name']}[@]}}", array["name"], fields)
        elif (constant := self.constant(written)) is not None:
            self.put(Word(constant), written, fields, quoted)
        else:
            held = self.variable(written)
            if held is None:
                fields.add_unknown(written)
            else:
                self.put(held, written, fields, quoted)

    def variable(self, written: str) -> Word | None:
        """What a variable holds: one that a default is given for, too, where it has a value."""
        default = DEFAULTED.fullmatch(written)
        name = default["name"] if default else variable_name(written)
        held = self.value(name) if name and self.value else None
        return held if isinstance(held, Word) and (held.text or not default) else None

    def put(self, held: Word, written: str, fields: _Fields, quoted: bool) -> None:
        """A variable's value, which is several words where it holds blanks and is not quoted."""
        self.spend(held.text)
        known = held.text
        for each in held.unknowns:
            known = known.replace(each, "")
        if quoted or not (BLANK.search(known) or PATTERN.search(known)):
            fields.add(held.text)
            fields.unknown += held.unknowns
        elif held.unknown is not None or PATTERN.search(known):
            fields.add_unknown(written)
        else:
            pieces = BLANK.split(held.text)
            for index, piece in enumerate(pieces):
                if index:
                    fields.end()
                fields.add(piece)
                self.spend("")

    def blankless(self, name: str) -> bool:
        """Whether the words of an array stay what they are without quotes."""
        held = self.value(name) if self.value else None
        return not isinstance(held, tuple) or not any(
            not word.text or BLANK.search(word.text) or PATTERN.search(word.text) for word in held
        )

    def put_array(self, written: str, name: str, fields: _Fields) -> None:
        """The words of an array; what stands before it is a part of the first, what follows of the last."""
        held = self.value(name) if self.value else None
        if not isinstance(held, tuple):
            fields.add_unknown(written)
            return
        for index, word in enumerate(held):
            if index:
                fields.end()
            self.spend(word.text)
            fields.add_word(word)
        fields.broken = True

    def spend(self, text: str) -> None:
        """Count what variables put in, which may be far more than the script holds. Raises CannotCheck."""
        self.spent += len(text) + WORD_COST
        if self.spent > SPENT_LIMIT:
            raise CannotCheck(f"{self.file}: its variables stand for more than {SPENT_LIMIT:,} characters")


def put_ansi(match: re.Match[str], fields: _Fields) -> None:
    """``$'…'``: text with escapes."""
    if all(escape[1] in ESCAPES for escape in ESCAPE.findall(match["inside"])):
        fields.add(ESCAPE.sub(lambda escape: ESCAPES[escape[0][1]], match["inside"]))
    else:
        fields.add_unknown(match[0])
    fields.there = fields.broken = True


def written_expansion(text: str, start: int) -> str:
    """The whole of an expansion: ``$NAME``, ``$1``, ``${…}``, ``$(…)``, a command in backquotes; a dollar alone."""
    if text[start] == "`":
        end = text.find("`", start + 1)
        return text[start : end + 1] if end > 0 else text[start:]
    opening = text[start + 1 : start + 2]
    if opening in PAIRS:
        if opening == "(" and (closed := end_of_command(text, start + 1)):
            return text[start:closed]
        depth = 0
        for match in BRACKETS[opening].finditer(text, start + 1):
            depth += 1 if match[0] == opening else -1
            if not depth:
                return text[start : match.end()]
        return text[start:]
    named = EXPANSION.match(text, start)
    return named[0] if named else "$"


def end_of_command(text: str, start: int) -> int | None:
    """Where the command that begins with a bracket ends: brackets in quotes are none of it."""
    open_marks: list[str] = []
    while len(open_marks) < DEPTH_LIMIT and (
        match := (QUOTED_MARKS if open_marks[-1:] == ['"'] else MARKS).search(text, start)
    ):
        start, mark = match.end(), match[0]
        if mark == ")" or (mark == '"' and open_marks[-1] == mark):
            open_marks.pop()
            if not open_marks:
                return start
        elif mark in ('"', "(", "$("):
            open_marks.append(mark[-1])
    return None


def sets(text: str) -> bool:
    """Whether a variable may be set after this word."""
    return text in LEADING or text in EXPORTS or text.startswith("-") or ASSIGNED.match(text) is not None


def variable_name(written: str) -> str | None:
    """The variable that ``$NAME`` or ``${NAME}`` stands for."""
    name = written.removeprefix("${").removesuffix("}") if written.startswith("${") else written[1:]
    return name if NAME.fullmatch(name) else None
