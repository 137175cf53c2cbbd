"""Values of an abstract run of a constructor: literals, and words over the keys of a config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from specfix.engines.transformers.expressions import FUNCTIONS, evaluate
from specfix.errors import MissingFact

MAX_SIZE = 400  # words of one expression; more would fill the data and say nothing to a reader
CONTAINERS = (list, dict, set, frozenset, tuple)
TESTS = {"is", "is not", "==", "!=", "in", "not in", "not", "isinstance", "is absent"}  # true or false
MAKERS = {"each", "list", "dict", "rope", "with", "list of", "keys", "values", "enumerate", "range"}  # never null
LAZY = {
    "completed",
    "some",
    "if",
    "none",
    "else",
    "and",
    "or",
    "each",
    "given",
    "var",
    "absent",
    "unknown",
    "rope",
    "base",
    "lit",
}


@dataclass(frozen=True, eq=False, slots=True)
class Lit:
    """A value that the source states. Containers are the same where they are one object, since they may be changed."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lit):
            return NotImplemented
        if isinstance(self.value, CONTAINERS) or isinstance(other.value, CONTAINERS):
            return self.value is other.value
        return type(self.value) is type(other.value) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(type(self.value))


@dataclass(frozen=True, slots=True)
class Word:
    """An expression (see ``specfix.engines.transformers.expressions``)."""

    word: str
    operands: tuple[Any, ...]
    size: int = field(compare=False, default=1)

    @property
    def never_absent(self) -> bool:
        if self.word in {"given", "absent", "base", "unknown", "var"}:
            return False
        if self.word in {"if", "none", "else", "and", "or"}:
            parts = self.operands[1:] if self.word in {"if", "else"} else self.operands
            return all(not isinstance(part, Word) or part.never_absent for part in parts)
        if self.word == "some":
            return not isinstance(self.operands[0], Word) or bool(self.operands[0].never_absent)
        return True


@dataclass(frozen=True, slots=True)
class Keywords:
    """Keyword arguments: those that are ``known``, and, where ``rest``, the config's other keys.

    ``doubts``: (condition, added): where it holds some of them, nobody knows which, were taken away, or ``added`` or
    changed as well.
    """

    known: Mapping[str, Any] = field(default_factory=dict)
    rest: bool = True
    doubts: tuple[tuple[Any, bool], ...] = ()

    def known_or_given(self, name: str) -> Any:
        """Without any doubt."""
        return self.known.get(name, given(name) if self.rest else ABSENT_WORD)

    def get(self, name: str) -> Any:
        value = self.known_or_given(name)
        for condition, added in self.doubts:
            doubtful = unknown("keys that are computed")
            taken = doubtful if added else word("if", word("is absent", value), ABSENT_WORD, doubtful)
            value = word("if", condition, taken, value)
        return value

    def with_(self, name: str, value: Any) -> Keywords:
        return replace(self, known={**self.known, name: value})

    def doubted(self, added: bool) -> Keywords:
        return replace(self, doubts=(*self.doubts, (Lit(True), added)))


ABSENT_WORD: Final = Word("absent", ())
NONE: Final = Lit(None)
OBJECT: Final = Word("unknown", ("an object",))


def given(name: str) -> Word:
    return Word("given", (name,))


def unknown(reason: str) -> Word:
    return Word("unknown", (reason,))


def is_unknown(value: Any) -> bool:
    return isinstance(value, Word) and value.word == "unknown"


def has_unknown(value: Any) -> bool:
    return isinstance(value, Word) and (value.word == "unknown" or any(map(has_unknown, value.operands)))


def truth(value: Any) -> bool | None:
    """Whether ``value`` is true; None where that depends on the config."""
    if isinstance(value, Lit):
        return bool(value.value)
    if isinstance(value, Word) and value.word == "absent":
        return False
    return None if isinstance(value, Word | Keywords) else True


def word(name: str, *operands: Any) -> Any:
    """The expression, made as plain as it gets."""
    simpler = _SIMPLER.get(name)
    if simpler is not None:
        result = simpler(*operands)
        if result is not None:
            return result
    if operands and is_unknown(operands[0]):
        return operands[0]
    if name not in LAZY:
        bad = next((each for each in operands if is_unknown(each)), None)
        if bad is not None:
            return bad
        if not all(isinstance(each, Lit | Word | str) for each in operands):
            return OBJECT
        if all(isinstance(each, Lit | str) for each in operands) and name in FUNCTIONS:
            return _folded(name, operands)
    size = 1 + sum(each.size if isinstance(each, Word) else 1 for each in operands)
    return unknown("a long computation") if size > MAX_SIZE else Word(name, operands, size)


def _folded(name: str, operands: tuple[Any, ...]) -> Any:
    plain = [name, *(["lit", each.value] if isinstance(each, Lit) else each for each in operands)]
    try:
        return Lit(evaluate(plain, {}))
    except MissingFact:
        return unknown("a computation that fails")


def _if(condition: Any, one: Any, other: Any) -> Any:
    decided = truth(condition)
    if decided is not None:
        return one if decided else other
    if one == other:
        return one
    if isinstance(condition, Word) and condition.word in {"is", "is not"} and condition.operands[1] == NONE:
        tested = condition.operands[0]
        if condition.word == "is" and other == tested:
            return word("none", tested, one)
        if condition.word == "is not" and one == tested:
            return word("none", tested, other)
    if isinstance(condition, Word) and condition.word == "not":
        return word("if", condition.operands[0], other, one)
    if isinstance(condition, Word) and condition.word == "!=" and condition.operands == (one, other):
        return one
    return _some(condition, one, other)


def _some(condition: Any, one: Any, other: Any) -> Any:
    """A computation on what is not null, which is written once: ["some", E, A], where A has ["var", "it"] for E."""
    if isinstance(condition, Word) and condition.word == "is not" and condition.operands == (other, NONE):
        inner, found = _replaced(one, other)
        if found and isinstance(other, Word) and (other.size > 3 or found > 1):
            return Word("some", (other, inner), 1 + other.size + (inner.size if isinstance(inner, Word) else 1))
    return None


def _replaced(value: Any, what: Any) -> tuple[Any, int]:
    if value == what:
        return Word("var", ("it",)), 1
    if not isinstance(value, Word):
        return value, 0
    parts = [_replaced(part, what) for part in value.operands]
    return Word(value.word, tuple(part for part, _ in parts), value.size), sum(count for _, count in parts)


def _none(value: Any, instead: Any) -> Any:
    if isinstance(value, Lit):
        return instead if value.value is None else value
    return value if _never_none(value) else None


def _else(value: Any, instead: Any) -> Any:
    if not isinstance(value, Word):
        return value
    if value.word == "absent":
        return instead
    if value.word == "else" and instead == ABSENT_WORD:
        return value
    if isinstance(instead, Word) and instead.word == "else" and instead.operands[0] == value:
        return instead
    return value if value.never_absent or instead == ABSENT_WORD else None


def _never_none(value: Any) -> bool:
    return isinstance(value, Word) and value.word in MAKERS


def _is(value: Any, other: Any) -> Any:
    return Lit(False) if other == NONE and (_never_none(value) or value is OBJECT) else None


def _is_not(value: Any, other: Any) -> Any:
    return Lit(True) if other == NONE and (_never_none(value) or value is OBJECT) else None


def _is_absent(value: Any) -> Any:
    if not isinstance(value, Word):
        return Lit(False)
    return Lit(True) if value.word == "absent" else Lit(False) if value.never_absent else None


def _and(one: Any, other: Any) -> Any:
    decided = truth(one)
    return None if decided is None else other if decided else one


def _or(one: Any, other: Any) -> Any:
    decided = truth(one)
    return None if decided is None else one if decided else other


def _xor(one: Any, other: Any) -> Any:
    if isinstance(other, Lit) and isinstance(other.value, bool) and isinstance(one, Word) and one.word in TESTS:
        return word("not", one) if other.value else one
    return None


def _not(value: Any) -> Any:
    decided = truth(value)
    return None if decided is None else Lit(not decided)


_SIMPLER: Final[Mapping[str, Any]] = {
    "if": _if,
    "none": _none,
    "else": _else,
    "is": _is,
    "is not": _is_not,
    "is absent": _is_absent,
    "and": _and,
    "or": _or,
    "not": _not,
    "^": _xor,
}


def parts_of(value: Any) -> Iterator[Any]:
    """Values that ``value`` may be or hold itself, not as a copy: those of its branches, and its elements."""
    yield value
    if isinstance(value, Word) and value.word in {"list", "dict", "with", "some"}:
        for each in value.operands:
            yield from parts_of(each)
    if isinstance(value, Word) and value.word in {"if", "none", "else", "and", "or"}:
        for each in value.operands[1:] if value.word == "if" else value.operands:
            yield from parts_of(each)


def as_json(value: Any) -> Any:
    """The expression as JSON. ValueError where it holds what JSON cannot."""
    if isinstance(value, Lit):
        return ["lit", plain(value.value)] if isinstance(value.value, CONTAINERS) else plain(value.value)
    if isinstance(value, str):
        return value
    if not isinstance(value, Word):
        raise ValueError("an object")
    if value.word == "else" and isinstance(value.operands[0], Word) and value.operands[0].word == "given":
        return ["given", value.operands[0].operands[0], as_json(value.operands[1])]
    return [value.word, *map(as_json, value.operands)]


def plain(value: Any) -> Any:
    """A literal as JSON has it. ValueError for one that JSON has not."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("keys that are no text")
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError("a value that is no JSON")


def each_of(over: Any, variables: Any, body: Any, condition: Any) -> Any:
    if is_unknown(over):
        return over
    if isinstance(over, Lit) and isinstance(body, Lit) and isinstance(condition, Lit):
        plain = [body.value for _ in over.value] if condition.value else []
        return Lit(plain)
    size = 1 + sum(part.size if isinstance(part, Word) else 1 for part in (over, body, condition))
    if size > MAX_SIZE:
        return unknown("a long computation")
    found = Word("each", (over, variables, body, condition), size)
    return _folded_each(found) if isinstance(over, Lit) and not _reads(found) else found


def _folded_each(found: Word) -> Any:
    try:
        return Lit(evaluate(_evaluable(found), {}))
    except (MissingFact, ValueError):
        return found


def _evaluable(value: Any) -> Any:
    """As JSON, but with literals as they are."""
    if isinstance(value, Lit):
        return ["lit", value.value]
    if isinstance(value, Word):
        return [value.word, *map(_evaluable, value.operands)]
    return value


def _reads(value: Any) -> bool:
    """Whether it depends on the config, or on a variable of another list."""
    if not isinstance(value, Word):
        return False
    return value.word in {"given", "base", "field"} or any(map(_reads, value.operands))


def elements_of(value: Any) -> list[Any] | None:
    if isinstance(value, Lit) and isinstance(value.value, list | tuple | dict | str):
        return [Lit(part) for part in value.value]
    if isinstance(value, Lit) and isinstance(value.value, set | frozenset):
        return [Lit(part) for part in sorted(value.value, key=str)]
    if isinstance(value, Word) and value.word == "list":
        return list(value.operands)
    return list(value) if isinstance(value, tuple) else None


def join(condition: Any, one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: choose(condition, one.get(name, ABSENT_WORD), two.get(name, ABSENT_WORD))
        for name in dict.fromkeys((*one, *two))
    }


def choose(condition: Any, one: Any, two: Any) -> Any:
    if one is two or one == two:
        return one
    if isinstance(one, Keywords) and isinstance(two, Keywords) and one.rest == two.rest:
        names = dict.fromkeys((*one.known, *two.known))
        known = {name: choose(condition, one.known_or_given(name), two.known_or_given(name)) for name in names}
        shared = [doubt for doubt in one.doubts if doubt in two.doubts]
        mine = [(word("and", condition, held), added) for held, added in one.doubts if (held, added) not in shared]
        other = word("not", condition)
        theirs = [(word("and", other, held), added) for held, added in two.doubts if (held, added) not in shared]
        return Keywords(known, one.rest, (*shared, *mine, *theirs))
    if isinstance(one, Lit | Word) and isinstance(two, Lit | Word):
        return word("if", condition, one, two)
    if isinstance(one, tuple) and isinstance(two, tuple) and len(one) == len(two):
        return tuple(choose(condition, a, b) for a, b in zip(one, two, strict=True))
    return unknown("an object")


def holds(value: Any) -> bool:
    """Whether it may be a list or an object, which can be changed. A key whose default is a number or a text is not."""
    if isinstance(value, Word) and value.word == "else" and isinstance(value.operands[1], Lit):
        return value.operands[1] == NONE or holds(value.operands[1])
    return isinstance(value, Word) or (isinstance(value, Lit) and isinstance(value.value, CONTAINERS))


def is_list(value: Any) -> bool:
    if isinstance(value, Word):
        return value.word in {"list", "each", "list of", "dict"} or is_unknown(value)
    return not isinstance(value, Lit) or isinstance(value.value, CONTAINERS)


def inner_of(value: Any) -> Iterator[Any]:
    """An expression and all that it is made of."""
    yield value
    for part in value.operands if isinstance(value, Word) else ():
        yield from inner_of(part)
