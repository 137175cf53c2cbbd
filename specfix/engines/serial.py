"""An engine's facts as JSON and back, by the dataclasses' types alone: loading must cost milliseconds."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from typing import Any

from specfix.engines.engine import SCHEMA, Engine

DEPTH = 2  # of lines: sections, facts, entries
WIDTH = 100


def dump(engine: Engine) -> str:
    """Broken into lines down to the entries of a fact, so that a diff of two releases can be read."""
    return _text({"schema": SCHEMA, **asdict(engine)}, 0) + "\n"


def load(text: str, source: str | None = None) -> Engine:
    """The engine that :func:`dump` wrote. ValueError where the text is something else."""
    content = json.loads(text)
    if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA:
        raise ValueError(f"not {SCHEMA}")
    if source is not None:
        content["source"] = source
    try:
        engine = _make(Engine, content)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not {SCHEMA}: {error}") from error
    assert isinstance(engine, Engine)
    return engine


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
