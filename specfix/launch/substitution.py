"""What stands in a word for an expansion: what the script set, as a shell splits it, else something unknown."""

from __future__ import annotations

import re
from collections.abc import Callable

from specfix.errors import CannotCheck
from specfix.launch.expansions import ARRAY, DEFAULTED, GUARDED_ARRAY, variable_name
from specfix.launch.fields import Fields
from specfix.launch.words import Word

BLANK = re.compile(r"[ \t\n]+")
PATTERN = re.compile(r"[*?\[]")
SPENT_LIMIT = 800_000  # characters that variables may put in, four times those of a script
WORD_COST = 50  # what a word counts there, however short

Value = Callable[[str], Word | tuple[Word, ...] | None]


class Substitution:
    """``value`` says what a variable, or an array (a tuple), holds now, None where it is not known. ``constant`` tells
    of other expansions (``$(…)``)."""

    def __init__(self, file: str, value: Value, constant: Callable[[str], str | None]) -> None:
        self._file, self._value, self._constant = file, value, constant
        self._spent = 0

    def put(self, written: str, fields: Fields, quoted: bool) -> None:
        """Put in what an expansion stands for. Raises CannotCheck where variables hold far more than is written."""
        if written == "$":
            fields.add("$")
        elif array := (GUARDED_ARRAY.fullmatch(written) or ARRAY.fullmatch(written)):
            if quoted or (ARRAY.fullmatch(written) and not self._blankless(array["name"])):
                fields.add_unknown(written)
            else:
                self.put_array(array["name"], fields)
        elif (constant := self._constant(written)) is not None:
            self._put_word(Word(constant), written, fields, quoted)
        else:
            held = self._variable(written)
            if held is None:
                fields.add_unknown(written)
            else:
                self._put_word(held, written, fields, quoted)

    def put_array(self, name: str, fields: Fields) -> None:
        """The words of an array; what stands before it is a part of the first, what follows of the last."""
        held = self._value(name)
        if not isinstance(held, tuple):
            fields.add_unknown(f"${{{name}[@]}}")
            return
        for index, word in enumerate(held):
            if index:
                fields.end()
            self._spend(word.text)
            fields.add_word(word)
        fields.broken = True

    def _variable(self, written: str) -> Word | None:
        """What a variable holds: one that a default is given for, too, where it has a value."""
        default = DEFAULTED.fullmatch(written)
        name = default["name"] if default else variable_name(written)
        held = self._value(name) if name else None
        return held if isinstance(held, Word) and (held.text or not default) else None

    def _put_word(self, held: Word, written: str, fields: Fields, quoted: bool) -> None:
        """A variable's value, which is several words where it holds blanks and is not quoted."""
        self._spend(held.text)
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
                self._spend("")

    def _blankless(self, name: str) -> bool:
        """Whether the words of an array stay what they are without quotes."""
        held = self._value(name)
        return not isinstance(held, tuple) or not any(
            not word.text or BLANK.search(word.text) or PATTERN.search(word.text) for word in held
        )

    def _spend(self, text: str) -> None:
        """Count what variables put in."""
        self._spent += len(text) + WORD_COST
        if self._spent > SPENT_LIMIT:
            raise CannotCheck(f"{self._file}: its variables stand for more than {SPENT_LIMIT:,} characters")
