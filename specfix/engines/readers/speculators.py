"""TODO."""

from __future__ import annotations

from specfix.engines.facts.speculative import SpeculatorsFacts
from specfix.engines.source.tree import SourceTree


def read_speculators(tree: SourceTree, unknown: dict[str, str]) -> SpeculatorsFacts:
    return SpeculatorsFacts()
