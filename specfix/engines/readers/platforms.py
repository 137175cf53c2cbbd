"""TODO."""

from __future__ import annotations

from specfix.engines.facts.backends import PlatformFacts
from specfix.engines.source.tree import SourceTree


def read_platforms(tree: SourceTree, unknown: dict[str, str]) -> PlatformFacts:
    return PlatformFacts()
