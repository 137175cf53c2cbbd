"""Small engines: every section is there, and holds only what a test says."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from importlib import import_module
from typing import Any

import pytest

from specfix.engines import Engine
from specfix.engines.engine import SECTIONS

SmallEngine = Callable[..., Engine]


def small(version: str = "1.0", unknown: Mapping[str, str] | None = None, **facts: Any) -> Engine:
    """A release with these facts: ``lengths={"v1_guard": True}``. Others have their default, or are empty."""
    made = {}
    for section, (module, kind) in SECTIONS.items():
        empty = bare(getattr(import_module(f"specfix.engines.facts.{module}"), kind))
        made[section] = replace(empty, **facts.pop(section, {}))
    return Engine(
        **{"name": "vllm", "version": version, "source": "shipped"} | made | facts, unknown=dict(unknown or {})
    )


def bare(kind: Any) -> Any:
    hints = typing.get_type_hints(kind)
    needed = [field for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING]
    return kind(**{field.name: nothing(hints[field.name]) for field in needed})


def nothing(kind: Any) -> Any:
    """The empty value of a type: None where it may be that."""
    origin, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        return None
    if origin is typing.Literal:
        return arguments[0]
    return bare(origin) if is_dataclass(origin) else origin()


@pytest.fixture
def small_engine() -> SmallEngine:
    return small
