"""Making conditions, folded where they need no test, and taking them apart again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from specfix.engines.comparisons import COMPARISONS
from specfix.engines.compiled import Condition
from specfix.engines.facts.decisions import Step
from specfix.engines.source.joining import FALSE, TRUE

NONE: Final[Condition] = ["const", None]
RAISES: Final[Condition] = ["const", "raises"]
A_TEXT: Final[Condition] = ["?", "a text"]  # made at run time: not None, and no more is known

OPPOSITES: Final = {"==": "!=", "!=": "==", "in": "not in", "not in": "in", "is": "is not", "is not": "is"}


def steps(tree: Condition, line: int) -> tuple[Step, ...]:
    """The leaves of a tree in order, each with the tests that lead to it; ``then`` is None where the function refuses.
    ValueError with the reason where a leaf could not be read."""
    return pruned(_steps(tree, line, TRUE))


def pruned(found: Iterable[Step]) -> tuple[Step, ...]:
    """Without the steps that cannot be reached, and those after which the next one would say the same."""
    kept: list[Step] = []
    for step in found:
        if any(_implies(step.when, earlier.when) for earlier in kept):
            continue
        while kept and kept[-1].then == step.then and _implies(kept[-1].when, step.when):
            kept.pop()
        kept.append(step)
    return tuple(kept)


def _implies(one: Condition, other: Condition) -> bool:
    parts = [part[1:] if part[0] == "and" else [] if part == TRUE else [part] for part in (one, other)]
    return all(part in parts[0] for part in parts[1])


def _steps(tree: Condition, line: int, when: Condition) -> Iterator[Step]:
    if tree[0] == "if":
        yield from _steps(tree[2], line, both([when, tree[1]]))
        yield from _steps(tree[3], line, when)
    elif tree[0] == "const":
        yield Step(when, None if tree == RAISES else tree[1], line)
    else:
        raise ValueError(why_unread(tree) if has_unread(tree) else "computed")


def has_unread(tree: Condition) -> bool:
    """Whether some part of ``tree`` could not be read."""
    if tree[:1] == ["const"]:
        return False
    return tree[:1] == ["?"] or any(has_unread(part) for part in tree if isinstance(part, list))


def why_unread(tree: Condition) -> str:
    """The reason given by the first part that could not be read."""
    if tree[:1] == ["?"]:
        return str(tree[1])
    return next((why_unread(part) for part in tree if isinstance(part, list) and has_unread(part)), "computed")


# Making and folding conditions


def if_(test: Condition, then: Condition, otherwise: Condition) -> Condition:
    """``then if test else otherwise``, folded where that needs no test."""
    if test[0] == "const":
        return then if test[1] else otherwise
    if then == otherwise and type(then[-1]) is type(otherwise[-1]):
        return then
    truths = [part[1] if part[0] == "const" else None for part in (then, otherwise)]
    if truths[0] is True and truths[1] is False:  # 1 and 0 are values, and no truths
        return test
    if truths[0] is False and truths[1] is True:
        return negated(test)
    if truths[0] is False and otherwise[0] != "const":
        return both([negated(test), otherwise])
    if truths[1] is False and then[0] != "const":
        return both([test, then])
    if truths[0] is True and otherwise[0] != "const":
        return either([test, otherwise])
    if truths[1] is True and then[0] != "const":
        return either([negated(test), then])
    return ["if", test, then, otherwise]


def both(parts: Iterable[Condition]) -> Condition:
    """All of ``parts``, as Python's ``and`` where these are truth values."""
    kept: list[Condition] = []
    for part in parts:
        if part[0] == "const" and not part[1]:
            return FALSE
        if part[0] != "const":
            kept += [each for each in (part[1:] if part[0] == "and" else [part]) if each not in kept]
    return TRUE if not kept else kept[0] if len(kept) == 1 else ["and", *kept]


def either(parts: Iterable[Condition]) -> Condition:
    """Any of ``parts``."""
    kept: list[Condition] = []
    for part in parts:
        if part[0] == "const" and part[1]:
            return TRUE
        if part[0] != "const":
            kept += [each for each in (part[1:] if part[0] == "or" else [part]) if each not in kept]
    return FALSE if not kept else kept[0] if len(kept) == 1 else ["or", *kept]


def negated(part: Condition) -> Condition:
    """``not part``."""
    if part[0] == "const":
        return ["const", not part[1]]
    if part[0] in OPPOSITES:
        return [OPPOSITES[part[0]], *part[1:]]
    return part[1] if part[0] == "not" else ["not", part]


def compared(sign: str, left: Condition, right: Condition) -> Condition:
    if left[0] == right[0] == "const":
        try:
            return ["const", bool(COMPARISONS[sign](left[1], right[1]))]
        except TypeError:
            return ["?", f"{left[1]!r} {sign} {right[1]!r}"]
    if left[0] == "if" and right[0] == "const" and all(_is_plain(way) for way in left[2:]):
        return if_(left[1], *(compared(sign, way, right) for way in left[2:]))
    if left == A_TEXT and right == NONE and sign in {"is", "is not"}:
        return ["const", sign == "is not"]
    return [sign, left, right]


def _is_plain(tree: Condition) -> bool:
    return tree[0] == "const" or tree == A_TEXT or (tree[0] == "if" and all(map(_is_plain, tree[2:])))


def listed(parts: Sequence[tuple[bool, Condition]]) -> Condition:
    """A list display; where an element is chosen by a test, the choice is between lists."""
    for index, (starred, part) in enumerate(parts):
        if part[0] == "if":
            ways = [listed([*parts[:index], (starred, way), *parts[index + 1 :]]) for way in part[2:]]
            return if_(part[1], *ways)
    if any(part[0] != "const" for _, part in parts):
        return (
            ["list", *(part for _, part in parts)] if not any(s for s, _ in parts) else ["?", "a list that is computed"]
        )
    items: list[object] = []
    for starred, part in parts:
        items += part[1] if starred else [part[1]]
    return ["const", items]
