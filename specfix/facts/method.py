"""The speculative method, by the name that the engine uses inside."""

from __future__ import annotations

from specfix.deployment import Serving
from specfix.errors import known


def method(serving: Serving) -> str:
    """``mtp`` for each of its older aliases (``deepseek_mtp`` …), else the method as given or as the draft says."""
    given = known(serving.method, "the speculative method")
    return "mtp" if given.endswith("_mtp") else given
