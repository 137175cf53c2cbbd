"""Look a model type's config class up in the shipped data, for the Transformers that an engine release asks for.

The data has a line for each model type (and for each inner class that is no model type's, by its name), so that only
the lines that are asked for are parsed: a first line names the minors that were read, each by its last patch, and each
further line is a name, a tab, and the history of its class as JSON: a list of [minor, what it has since then], where
null means that the minor has no such class. The first of them is whole, the others are differences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from specfix.engines.facts.classes import ConfigClass
from specfix.errors import CannotCheck, MissingFact

DATA = Path(__file__).parent / "classes.txt"
SCHEMA = "specfix/transformers-v1"
BASE = "PreTrainedConfig"  # the class under all others, by its name of today
CHECKS = "checks_types"  # mark of the base class: config classes refuse values of other types than their fields'
# mark of the base class: config classes refuse layer_types that are not one for each layer; false of a class that has a
# check of its own
COUNTS = "counts_layers"
FIELDS = ("defaults", "derived", "unknown")  # sections of which a field is in one

State = dict[str, Any]  # sections of a ConfigClass as JSON, empty ones left out; and the marks

_CLAUSE = re.compile(r"(?P<sign>===?|!=|<=?|>=?|~=)\s*(?P<numbers>\d+(?:\.\d+)*)(?P<all>\.\*)?")
_END = 1 << 30  # above any patch number


@cache
def class_defaults(model_type: str, required: str | None = None) -> ConfigClass | None:
    """The config class that Transformers has for ``model_type``; a class's own name does as well.

    ``required`` is the range of Transformers that the engine release asks for, as its metadata write it
    (``<5.18.0,>=5.10.4``); None: whatever is known. The class is that of the newest known minor in the range, with what
    it is in the ``others``, so that :func:`resolve` states what all of them agree in; ``missing_in`` names the minors
    that have no such class. None where none of them has it. MissingFact where no known minor is in the range, and where
    the range cannot be read.
    """
    wanted = minors(required)
    lines = _lines()
    found = _states(lines, model_type, wanted)
    present = [minor for minor in wanted if found[minor] is not None]
    if not present:
        return None
    base = _states(lines, BASE, wanted)
    pairs: dict[tuple[int, int], str] = {}  # a minor without a change has the very objects of the one before
    for minor in reversed(present):
        pairs.setdefault((id(base[minor]), id(found[minor])), minor)
    distinct: dict[str, State] = {}  # by the newest minor that has it
    for minor in pairs.values():
        state = _merged(base[minor], found[minor] or {})
        if state not in distinct.values():
            distinct[minor] = state
    newest, *others = (_made(minor, state) for minor, state in distinct.items())
    return replace(newest, others=tuple(others), missing_in=tuple(minor for minor in wanted if minor not in present))


@cache
def types_checked(required: str | None = None) -> bool:
    """Whether the config classes of all known minors in the range check the types of their fields. MissingFact as in
    :func:`class_defaults`."""
    return all(state and state.get(CHECKS) for state in _states(_lines(), BASE, minors(required)).values())


@cache
def layers_counted(name: str, required: str | None = None) -> bool:
    """Whether the config class ``name`` of all known minors in the range, by its model type or its own name, refuses
    layer_types of another number than num_hidden_layers. MissingFact as in :func:`class_defaults`."""
    wanted = minors(required)
    base, own = _states(_lines(), BASE, wanted), _states(_lines(), name, wanted)
    return all((base[minor] or {}).get(COUNTS) and (own[minor] or {}).get(COUNTS) is not False for minor in wanted)


def named_in(path: str) -> bool:
    """Whether some model type that any known minor has is a part of ``path``."""
    return any(name in path for name in _types())


@cache
def _types() -> tuple[str, ...]:
    names = (line.partition(b"\t")[0].decode() for line in _lines().splitlines()[1:])
    return tuple(name for name in names if name and name == name.lower())


def minors(required: str | None = None) -> list[str]:
    """The known minors of which a release is in the range ``required``, oldest first. MissingFact where none is."""
    known = list(_head()["minors"])
    if required is None:
        return known
    found = [minor for minor in known if _in_range(minor, required)]
    if not found:
        raise MissingFact(f"a known Transformers in {required!r} (known: {known[0]} to {known[-1]})")
    return found


def _in_range(minor: str, required: str) -> bool:
    """Whether some patch of ``minor`` meets all clauses. A single patch that is excluded leaves its minor in."""
    this = tuple(map(int, minor.split(".")))
    low, high = 0, _END  # of the patch number, both included
    for clause in filter(None, (part.strip() for part in required.split(","))):
        match = _CLAUSE.match(clause)
        if match is None:
            raise MissingFact(f"a range of Transformers that can be read ({required!r})")
        numbers = [int(number) for number in match["numbers"].split(".")]
        sign, whole = match["sign"][:2], (*numbers, 0, 0)[:3]
        of_minor, patch = whole[:2], whole[2]
        if match["all"] or sign == "~=":
            length = len(numbers) - (sign == "~=")
            same = this[: min(length, 2)] == tuple(numbers[: min(length, 2)])
            if sign == "~=":
                if not same or this < of_minor:
                    return False
                low = max(low, patch) if this == of_minor else low
            elif same == (sign == "!=") and length <= 2:
                return False
        elif sign == "==":
            if this != of_minor:
                return False
            low, high = max(low, patch), min(high, patch)
        elif sign in {">=", ">"}:
            if this < of_minor:
                return False
            low = max(low, patch + (sign == ">")) if this == of_minor else low
        elif sign in {"<=", "<"}:
            if this > of_minor:
                return False
            high = min(high, patch - (sign == "<")) if this == of_minor else high
    return low <= high


@cache
def _lines() -> bytes:
    try:
        return DATA.read_bytes()
    except OSError as error:
        raise CannotCheck(f"{DATA} cannot be read ({error}): this installation of specfix is broken") from error


@cache
def _head() -> Mapping[str, Any]:
    lines = _lines()
    try:
        head = json.loads(lines[: lines.index(b"\n")])
        if head.get("schema") == SCHEMA and head["minors"]:
            return dict(head)
    except (ValueError, KeyError, AttributeError):
        pass
    raise CannotCheck(f"{DATA} is damaged: this installation of specfix is broken")


def _states(lines: bytes, name: str, wanted: Iterable[str]) -> dict[str, State | None]:
    """What each of the ``wanted`` minors has under ``name``; None where it has nothing."""
    if not name or any(character in name for character in '\t\n"'):
        return dict.fromkeys(wanted)
    start = lines.find(f"\n{name}\t".encode())
    if start < 0:  # the name of a class that has a model type
        start = lines.rfind(b"\n", 0, max(lines.find(f'"name":"{name}"'.encode()), 0))
    if start < 0:
        return dict.fromkeys(wanted)
    history = json.loads(lines[lines.index(b"\t", start) + 1 : lines.index(b"\n", start + 1)])
    found = _replayed(history, _head()["minors"])
    return {minor: found[minor] for minor in wanted}


def known_states(file: Path = DATA) -> tuple[dict[str, str], dict[str, dict[str, State]]]:
    """The release that was read of each minor, and all that each minor has. ValueError where the file is something
    else."""
    head, *lines = file.read_text("utf-8").splitlines()
    releases = json.loads(head)["minors"]
    states: dict[str, dict[str, State]] = {minor: {} for minor in releases}
    for line in lines:
        name, _, history = line.partition("\t")
        for minor, state in _replayed(json.loads(history), releases).items():
            if state is not None:
                states[minor][name] = state
    return dict(releases), states


def _replayed(history: Iterable[tuple[str, Any]], known: Iterable[str]) -> dict[str, State | None]:
    """What each known minor has, of the changes."""
    changes = dict(history)
    found: dict[str, State | None] = {}
    state: State | None = None
    for minor in known:
        if minor in changes:
            state = None if changes[minor] is None else applied(state or {}, changes[minor])
        found[minor] = state
    return found


def applied(state: State, change: Mapping[str, Any]) -> State:
    """``state`` after ``change``, as :func:`difference` found it."""
    result = dict(state)
    for section, content in change.items():
        if section.startswith("-"):
            if content is None:
                del result[section[1:]]
            else:
                result[section[1:]] = {name: each for name, each in result[section[1:]].items() if name not in content}
        elif isinstance(content, dict):
            result[section] = {**result.get(section, {}), **content}
        else:
            result[section] = content
    return {section: content for section, content in result.items() if content not in ({}, [])}


def difference(old: State, new: State) -> dict[str, Any]:
    """The change that makes ``new`` of ``old``: ``-section`` lists what it loses (null: all of it)."""
    change: dict[str, Any] = {}
    for section in sorted({*old, *new}):
        before, after = old.get(section), new.get(section)
        if same(before, after):
            continue
        if after is None:
            change[f"-{section}"] = None
        elif isinstance(after, dict) and isinstance(before, dict):
            lost = sorted(set(before) - set(after))
            if lost:
                change[f"-{section}"] = lost
            gained = {name: part for name, part in after.items() if name not in before or not same(before[name], part)}
            if gained:
                change[section] = gained
        else:
            change[section] = after
    return change


def same(one: Any, other: Any) -> bool:
    """Whether both are one JSON text: 1, 1.0 and true are three values."""
    if isinstance(one, dict | list | tuple) or isinstance(other, dict | list | tuple):
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    return type(one) is type(other) and bool(one == other)


def _merged(base: State | None, own: State) -> State:
    """``own`` with what it leaves to the base class."""
    if base is None or own is base:
        return own
    stated = {name for section in (*FIELDS, "parts") for name in own.get(section, ())}
    merged = dict(own)
    for section in FIELDS:
        kept = {name: each for name, each in base.get(section, {}).items() if name not in stated}
        merged[section] = {**kept, **own.get(section, {})}
    return merged


def _made(minor: str, state: State) -> ConfigClass:
    made = {each.name: state[each.name] for each in fields(ConfigClass) if each.name in state}
    return ConfigClass(**{**made, "named_parts": tuple(state.get("named_parts", ())), "minor": minor})
