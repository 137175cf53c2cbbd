"""What an engine release can do, as typed facts read from its own source. Knows no rule and no deployment."""

from specfix.engines.engine import Engine

__all__ = ["Engine"]
