"""Check and repair a speculative-decoding deployment before a GPU is taken.

    report = specfix.check("path/to/target", "path/to/draft", engine="vllm==0.26.0", hardware="h200")
    report.verdict  # "pass", "warn", "fail" or "unknown"
    specfix.fix("path/to/target", "path/to/draft", out="fixed", engine="vllm==0.26.0", hardware="h200")

What cannot be checked at all raises :class:`CannotCheck`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers take it; typing itself costs more than all of this module
if TYPE_CHECKING:
    from typing import Any

    from specfix.checker.report import Report
    from specfix.checking import check
    from specfix.deployment import Deployment
    from specfix.errors import CannotCheck
    from specfix.repairing import Fixed, fix

__all__ = ["CannotCheck", "Deployment", "Fixed", "Report", "__version__", "check", "fix"]
__version__ = "0.1.0"  # the build reads it from here, too

# Fetched on first use, so that `import specfix` costs nothing.
_HOMES = {
    "CannotCheck": "specfix.errors",
    "Deployment": "specfix.deployment",
    "Fixed": "specfix.repairing",
    "Report": "specfix.checker.report",
    "check": "specfix.checking",
    "fix": "specfix.repairing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'specfix' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
