"""TODO."""

from __future__ import annotations

from specfix.engines.facts.speculative import SpeculativeFacts
from specfix.engines.source.tree import SourceTree


def read_speculative(tree: SourceTree, unknown: dict[str, str]) -> SpeculativeFacts:
    return SpeculativeFacts()
