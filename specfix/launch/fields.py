"""The words that one word as written becomes: a variable in it may hold several, or none."""

from __future__ import annotations

from specfix.deployment import Location
from specfix.launch.words import Span, Word


class Fields:
    """Those made so far, and the one that is being made."""

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
