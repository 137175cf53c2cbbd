"""Where an expression of the engine stands: in which file and class, with which names known."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from specfix.engines.compiled import Condition
from specfix.engines.source.classes import Class, Lineage
from specfix.engines.source.tree import literal, plain

MAX_DEPTH = 12  # calls followed into one another


@dataclass(frozen=True, slots=True)
class Backing:
    """A class as the engine has it: made by a ``class`` statement, or by a function that returns one of its own.

    ``closure``: what the parameters of that function stand for."""

    lineage: Lineage
    closure: Mapping[str, Condition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """``local`` are the names that are known."""

    file: str
    local: dict[str, Condition]
    backing: Backing | None = None  # the class that ``cls`` is
    owner: Class | None = None  # the one of its bases that this is written in
    depth: int = 0


def defaults(function: ast.FunctionDef) -> dict[str, Condition]:
    """The parameters that have a default."""
    arguments = function.args
    places = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    pairs = [*zip(places, arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return {a.arg: ["const", plain(literal(d))] for a, d in pairs}
