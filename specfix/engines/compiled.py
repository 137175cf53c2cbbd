"""Conditions compiled to functions: a check decides some hundred of them, and the same ones in each check.

The grammar is in specfix.engines.conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, Final

from specfix.engines.comparisons import COMPARISONS

# nested lists in prefix form, with the dotted names of the engine's own source, such as
#   ["and", ["==", ["name", "speculative_config.method"], ["const", "eagle3"]], ["name", "parallel_config.enable_dbo"]]
Condition = list[Any]
ITEM: Final = "item"


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
_EXISTS: Final = object()  # an object of which only attributes are known: true, and not None

Missing = set[str] | None  # what is missing is added to it; None: nobody asks
# of the values by dotted name, what is missing, and the element of the list that is gone through (UNKNOWN: of none)
Decide = Callable[[Mapping[str, object], Missing, object], bool | None]
Value = Callable[[Mapping[str, object], Missing, object], Any]


class Known(dict[str, object]):
    """Values by dotted name that many conditions are held against."""

    @cached_property
    def objects(self) -> frozenset[str]:
        """The names of which an attribute is known when this is first asked."""
        return frozenset().union(*map(_objects, self))


@lru_cache(1024)
def _objects(name: str) -> tuple[str, ...]:
    """Of ``a.b.c`` ``a`` and ``a.b``."""
    parts = name.split(".")
    return tuple(".".join(parts[:count]) for count in range(1, len(parts)))


def compiled(condition: Condition) -> Decide:
    """The function that decides ``condition``."""
    return _truth(condition)


def parts(condition: Condition) -> Iterator[Condition]:
    """A condition and all within it, outermost first."""
    yield condition
    for part in condition[1:] if condition[0] not in ("name", "const", "?") else ():
        yield from parts(part)


def names(condition: Condition) -> frozenset[str]:
    """All names that a condition speaks of."""
    if not isinstance(condition, list):
        return frozenset()
    if condition[:1] == ["name"]:
        return frozenset({condition[1]} - {ITEM})
    if condition[:1] == ["const"]:
        return frozenset()
    return frozenset().union(*(names(part) for part in condition[1:]))


def _truth(condition: Condition) -> Decide:
    head, *rest = condition
    match head:
        case "and" | "or":
            return _first_decisive([_truth(part) for part in rest], head == "or")
        case "not":
            return _negated(_truth(rest[0]))
        case "if":
            return _branched(*map(_truth, rest))
        case "any" | "all":
            return _of_each(_elements(rest[0]), _truth(rest[1]), head == "any")
    if head in COMPARISONS:
        return _held_against(head, rest[0][1], rest[1][1]) if _is_plain(*rest) else _compared(head, *map(_value, rest))
    found = _value(condition)

    def decide(values: Mapping[str, object], missing: Missing, item: object) -> bool | None:
        value = found(values, missing, item)
        return None if value is UNKNOWN else bool(value)

    return decide


def _first_decisive(parts: Sequence[Decide], decisive: bool) -> Decide:
    """One operand that is ``decisive`` decides, whatever the unknown ones are."""

    def decide(values: Mapping[str, object], missing: Missing, item: object) -> bool | None:
        wanted: Missing = None if missing is None else set()
        result: bool | None = not decisive
        for part in parts:
            held = part(values, wanted, item)
            if held is decisive:
                return decisive
            if held is None:
                result = None
        if missing is not None and wanted:
            missing |= wanted
        return result

    return decide


def _negated(part: Decide) -> Decide:
    def decide(values: Mapping[str, object], missing: Missing, item: object) -> bool | None:
        held = part(values, missing, item)
        return None if held is None else not held

    return decide


def _branched(test: Decide, then: Decide, otherwise: Decide) -> Decide:
    """Where the test is unknown, both ways may yet come to the same."""

    def decide(values: Mapping[str, object], missing: Missing, item: object) -> bool | None:
        wanted: Missing = None if missing is None else set()
        held = test(values, wanted, item)
        if held is not None:
            return (then if held else otherwise)(values, missing, item)
        one, other = then(values, wanted, item), otherwise(values, wanted, item)
        if one is None or one is not other:
            if missing is not None and wanted:
                missing |= wanted
            return None
        return one

    return decide


def _of_each(elements: Value, test: Decide, decisive: bool) -> Decide:
    def decide(values: Mapping[str, object], missing: Missing, item: object) -> bool | None:
        parts = elements(values, missing, item)
        if parts is None:
            return None
        each = [partial(_with_item, test, part) for part in parts]
        return _first_decisive(each, decisive)(values, missing, item)

    return decide


def _with_item(test: Decide, part: object, values: Mapping[str, object], missing: Missing, _: object) -> bool | None:
    return test(values, missing, part)


def _value(condition: Condition) -> Value:
    head, *rest = condition
    match head:
        case "const":
            return _constant(rest[0])
        case "name":
            return _named(rest[0])
        case "?":
            return _missing(f"? {rest[0]}")
        case "and" | "or":
            return _stopping([_value(part) for part in rest], head == "or")
        case "if":
            return _chosen(_truth(rest[0]), _value(rest[1]), _value(rest[2]))
        case "list":
            return _listed([_value(part) for part in rest])
        case "len":
            return _length(_elements(rest[0]))
        case "count":
            return _counted(_elements(rest[0]), _truth(rest[1]))
    if head == "%":
        return _remainder(_value(rest[0]), _value(rest[1]))
    test = _truth(condition)

    def value(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        held = test(values, missing, item)
        return UNKNOWN if held is None else held

    return value


def _constant(constant: object) -> Value:
    return lambda values, missing, item: constant


def _missing(why: str) -> Value:
    def value(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        if missing is not None:
            missing.add(why)
        return UNKNOWN

    return value


def _named(name: str) -> Value:
    def value(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        if name in values:
            return values[name]
        if name in values.objects if isinstance(values, Known) else any(each.startswith(f"{name}.") for each in values):
            return _EXISTS
        if missing is not None:
            missing.add(name)
        return UNKNOWN

    def element(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        return value(values, missing, item) if item is UNKNOWN else item

    return element if name == ITEM else value


def _stopping(parts: Sequence[Value], stop: bool) -> Value:
    """``and`` and ``or`` as a value: the operand at which Python stops."""

    def value(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        found: Any = UNKNOWN
        for part in parts:
            found = part(values, missing, item)
            if found is UNKNOWN or bool(found) is stop:
                return found
        return found

    return value


def _chosen(test: Decide, then: Value, otherwise: Value) -> Value:
    def value(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        held = test(values, missing, item)
        return UNKNOWN if held is None else (then if held else otherwise)(values, missing, item)

    return value


def _listed(parts: Sequence[Value]) -> Value:
    def value(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        items = [part(values, missing, item) for part in parts]
        return UNKNOWN if any(each is UNKNOWN for each in items) else items

    return value


def _length(elements: Value) -> Value:
    def value(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        parts = elements(values, missing, item)
        return UNKNOWN if parts is None else len(parts)

    return value


def _counted(elements: Value, test: Decide) -> Value:
    def value(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        parts = elements(values, missing, item)
        held = [test(values, missing, part) for part in parts or ()]
        return UNKNOWN if parts is None or None in held else sum(map(bool, held))

    return value


def _is_plain(one: Condition, other: Condition) -> bool:
    """Whether a value is compared with a literal, as most are."""
    return bool(one[0] == "name" and one[1] != ITEM and other[0] == "const")


def _held_against(head: str, name: str, constant: object) -> Decide:
    compare = COMPARISONS[head]
    at_length: Decide | None = None  # made where it is needed: many names are known in each check

    def decide(values: Mapping[str, object], missing: Missing, item: object) -> bool | None:
        nonlocal at_length
        if name in values:
            try:
                return bool(compare(values[name], constant))
            except TypeError:
                pass
        if at_length is None:
            at_length = _compared(head, _named(name), _constant(constant))
        return at_length(values, missing, item)

    return decide


def _compared(head: str, one: Value, other: Value) -> Decide:
    compare = COMPARISONS[head]

    def decide(values: Mapping[str, object], missing: Missing, item: object) -> bool | None:
        left, right = one(values, missing, item), other(values, missing, item)
        if left is UNKNOWN or right is UNKNOWN:
            return None
        if left is _EXISTS or right is _EXISTS:  # all that is known of it is that it is not None
            known = None in (left, right) and head in {"is", "is not", "==", "!="}
            return head in {"is not", "!="} if known else None
        try:
            return bool(compare(left, right))
        except TypeError:
            if missing is not None:
                missing.add(f"? {left!r} {head} {right!r}")
            return None

    return decide


def _remainder(one: Value, other: Value) -> Value:
    def value(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        left, right = one(values, missing, item), other(values, missing, item)
        if left is UNKNOWN or right is UNKNOWN or left is _EXISTS or right is _EXISTS:
            return UNKNOWN
        try:
            return left % right
        except TypeError:
            if missing is not None:
                missing.add(f"? {left!r} % {right!r}")
            return UNKNOWN

    return value


def _elements(condition: Condition) -> Value:
    found = _value(condition)

    def elements(values: Mapping[str, object], missing: Missing, item: object) -> Any:
        value = found(values, missing, item)
        return list(value) if isinstance(value, list | tuple | set | frozenset | dict) else None

    return elements
