"""One word of a command: what it says, what of that is known only where it runs, and where it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace

from specfix.deployment import Location
from specfix.launch.expansions import ARRAY
from specfix.record import record

COMMAND_LINE = "command line"
ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<added>\+?)=(?P<value>.*)", re.ASCII | re.DOTALL)


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
