"""TODO."""

from __future__ import annotations

from specfix.engines.facts.backends import BackendFacts
from specfix.engines.source.tree import SourceTree


def read_backends(tree: SourceTree, unknown: dict[str, str]) -> BackendFacts:
    return BackendFacts()
