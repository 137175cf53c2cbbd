"""TODO."""

from __future__ import annotations

from specfix.engines.facts.classes import ConfigClassFacts
from specfix.engines.source.tree import SourceTree


def read_configs(tree: SourceTree, unknown: dict[str, str]) -> ConfigClassFacts:
    return ConfigClassFacts()
