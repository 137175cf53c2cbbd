"""The facts of one section, each read by a function of its own, which may say why it could not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from specfix.engines.source.tree import SourceTree

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """``unknown`` gets the reasons of what could not be read."""

    name: str
    tree: SourceTree
    unknown: dict[str, str]

    def read(self, fact: str, reader: Callable[[SourceTree], T]) -> T | None:
        """What ``reader`` finds; None where it raises ValueError, whose text is the reason."""
        try:
            return reader(self.tree)
        except ValueError as error:
            self.unknown[f"{self.name}.{fact}"] = str(error)
            return None
