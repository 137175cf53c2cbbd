"""TODO."""

from __future__ import annotations

from specfix.engines.facts.speculative import MtpFacts
from specfix.engines.source.tree import SourceTree


def read_mtp(tree: SourceTree, unknown: dict[str, str]) -> MtpFacts:
    return MtpFacts()
