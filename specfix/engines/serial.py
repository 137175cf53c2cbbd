"""An engine's facts as JSON and back, by the dataclasses' types alone: loading must cost milliseconds."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

from specfix.engines.engine import SCHEMA, SECTIONS, Engine

HEAD = ("name", "version", "source", "unknown")
DEPTH = 2  # of lines: sections, facts, entries
WIDTH = 100


def dump(engine: Engine) -> str:
    """Broken into lines down to the entries of a fact, so that a diff of two releases can be read."""
    return _text({"schema": SCHEMA, **as_json(engine)}, 0) + "\n"


def as_json(engine: Engine) -> dict[str, Any]:
    """The head and each section, as JSON values."""
    head = {name: getattr(engine, name) for name in HEAD}
    return {**head, **{name: asdict(getattr(engine, name)) for name in SECTIONS}}


def load(text: str, source: str | None = None) -> Engine:
    """The engine that :func:`dump` wrote; its sections are made when they are asked for. ValueError where the text is
    something else."""
    content = json.loads(text)
    if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA or set(content) != {*HEAD, *SECTIONS}:
        raise ValueError(f"not {SCHEMA}")
    head = {name: content.pop(name) for name in HEAD}
    if source is not None:
        head["source"] = source
    return Engine.lazy(head, content)


def make_section(name: str, content: Any) -> Any:
    """The section of this name. ValueError where ``content`` is something else."""
    module, kind = SECTIONS[name]
    try:
        return _make(getattr(import_module(f"specfix.engines.facts.{module}"), kind), content)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no section {name} of {SCHEMA}: {error}") from error


def _text(value: Any, depth: int) -> str:
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if depth > DEPTH or len(line) <= WIDTH or not isinstance(value, dict | list | tuple):
        return line
    start = "\n" + " " * depth
    if isinstance(value, dict):
        inner = [f"{start} {json.dumps(key)}: {_text(value[key], depth + 1)}" for key in sorted(value)]
        return f"{{{','.join(inner)}{start}}}"
    return f"[{','.join(f'{start} {_text(part, depth + 1)}' for part in value)}{start}]"


def _make(kind: Any, value: Any) -> Any:
    """``value`` as a ``kind``: dataclasses from objects, tuples from lists, inside containers too."""
    if isinstance(kind, type) and is_dataclass(kind):
        types_of = _field_types(kind)
        return kind(**{name: _make(types_of[name], part) for name, part in value.items()})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        wanted = [argument for argument in arguments if argument is not type(None)]
        return None if value is None else _make(wanted[0], value)
    if origin is tuple:
        of = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(_make(argument, part) for argument, part in zip(of, value, strict=True))
    if origin in {dict, Mapping}:
        return {key: _make(arguments[1], part) for key, part in value.items()}
    return value


@cache
def _field_types(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
