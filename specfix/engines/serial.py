"""An engine's facts as JSON and back, by the dataclasses' types alone: loading must cost milliseconds.

Each section of a file starts on a line of its own, one space in (`` "backends": …``), so that its text can be cut out
and parsed when it is first asked for. Fields of entries that have their default are left out.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any

from specfix.engines.engine import SCHEMA, SECTIONS, Engine
from specfix.record import is_record

HEAD = ("name", "version", "source", "unknown")
DEPTH = 2  # of lines: sections, facts, entries
WIDTH = 100

Maker = Callable[[Any], Any]

# hints of fields that need no maker
_AS_IN_JSON = re.compile(
    r"(?:str|int|bool|float|None|Literal\[[^]]*\]|Condition|dict\[str, |Mapping\[str, |\]|Any| \| )+"
)
_START, _END = '\n "', "\n}\n"  # of a section's line, and of the file


def dump(engine: Engine) -> str:
    """Broken into lines down to the entries of a fact, so that a diff of two releases can be read."""
    content = {"schema": SCHEMA, **{name: getattr(engine, name) for name in HEAD}}
    for name in SECTIONS:
        section = getattr(engine, name)
        content[name] = {field.name: _sparse(getattr(section, field.name)) for field in fields(section)}
    return "{" + ",".join(f'{_START}{name}": {_text(content[name], 1)}' for name in sorted(content)) + _END


def as_json(engine: Engine) -> dict[str, Any]:
    """The head and each section, as JSON values."""
    head = {name: getattr(engine, name) for name in HEAD}
    return {**head, **{name: asdict(getattr(engine, name)) for name in SECTIONS}}


def load(text: str, source: str | None = None) -> Engine:
    """The engine that :func:`dump` wrote; its sections are parsed and made when they are asked for. ValueError where
    the text is something else."""
    opening, *lines = text.removesuffix(_END).split(_START)
    parts = {name: value.removesuffix(",") for name, _, value in (line.partition('": ') for line in lines)}
    if opening != "{" or not text.endswith(_END) or set(parts) != {"schema", *HEAD, *SECTIONS}:
        raise ValueError(f"not {SCHEMA}")
    head = {name: json.loads(parts.pop(name)) for name in ("schema", *HEAD)}
    if head.pop("schema") != SCHEMA:
        raise ValueError(f"not {SCHEMA}")
    if source is not None:
        head["source"] = source
    return Engine.lazy(head, parts)


def make_section(name: str, text: str) -> Any:
    """The section of this name. ValueError where ``text`` is something else."""
    module, kind = SECTIONS[name]
    try:
        return _make(getattr(import_module(f"specfix.engines.facts.{module}"), kind), json.loads(text))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no section {name} of {SCHEMA}: {error}") from error


def _sparse(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        kept = [(field.name, getattr(value, field.name)) for field in fields(value) if not _is_default(field, value)]
        return {name: _sparse(part) for name, part in kept}
    if isinstance(value, Mapping):
        return {key: _sparse(part) for key, part in value.items()}
    return [_sparse(part) for part in value] if isinstance(value, list | tuple) else value


def _is_default(field: Field[Any], owner: Any) -> bool:
    value = getattr(owner, field.name)
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return type(value) is type(default) and bool(value == default)  # 0 is not False


def _text(value: Any, depth: int) -> str:
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if depth > DEPTH or len(line) <= WIDTH or not isinstance(value, dict | list | tuple):
        return line
    start = "\n" + " " * depth
    if isinstance(value, dict):
        inner = [f"{start} {json.dumps(key)}: {_text(value[key], depth + 1)}" for key in sorted(value)]
        return f"{{{','.join(inner)}{start}}}"
    return f"[{','.join(f'{start} {_text(part, depth + 1)}' for part in value)}{start}]"


@cache
def _maker(kind: Any) -> Maker | None:
    """What makes a ``kind`` of a JSON value: dataclasses of objects, tuples of lists, inside containers too. None where
    the value is one already."""
    if isinstance(kind, type) and is_record(kind):
        return partial(_make, kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        inner = _maker(next(argument for argument in arguments if argument is not type(None)))
        return None if inner is None else partial(_optional, inner)
    if origin in {dict, Mapping}:
        inner = _maker(arguments[1])
        return None if inner is None else partial(_mapping, inner)
    if origin is tuple and arguments[1:] == (...,):
        inner = _maker(arguments[0])
        return tuple if inner is None else partial(_row, inner)
    return partial(_pair, [_maker(argument) for argument in arguments]) if origin is tuple else None


@cache
def _makers(kind: Any) -> dict[str, Maker]:
    """Those of the fields of a dataclass that need one. Most hold what JSON holds, and to evaluate their hints would
    cost more than all the rest."""
    hints = {name: str(hint) for name, hint in kind.__annotations__.items()}
    made = {name: _hinted(kind.__module__, hint) for name, hint in hints.items() if not _AS_IN_JSON.fullmatch(hint)}
    return {name: make for name, make in made.items() if make}


@cache
def _hinted(module: str, hint: str) -> Maker | None:
    return _maker(eval(hint, vars(import_module(module))))


def _make(kind: Any, value: dict[str, Any]) -> Any:
    for name, make in _makers(kind).items():
        if name in value:
            value[name] = make(value[name])
    return kind(**value)


def _optional(inner: Maker, value: Any) -> Any:
    return None if value is None else inner(value)


def _mapping(inner: Maker, value: dict[str, Any]) -> dict[str, Any]:
    return {key: inner(part) for key, part in value.items()}


def _row(inner: Maker, value: list[Any]) -> tuple[Any, ...]:
    return tuple(map(inner, value))


def _pair(inner: list[Maker | None], value: list[Any]) -> tuple[Any, ...]:
    return tuple(make(part) if make else part for make, part in zip(inner, value, strict=True))
