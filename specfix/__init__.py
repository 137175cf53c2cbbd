"""Check a speculative-decoding deployment before a GPU is taken.

>>> report = specfix.check("path/to/target", "path/to/draft", engine="vllm==0.26.0", hardware="h200")
>>> report.verdict
'fail'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specfix.checker.report import Report
    from specfix.deployment import Deployment

__all__ = ["Deployment", "Report", "__version__", "check"]
__version__ = "0.1.0"  # the build reads it from here, too


def __getattr__(name: str) -> Any:  # names that cost an import, fetched on first use
    if name == "Deployment":
        from specfix.deployment import Deployment

        return Deployment
    if name == "Report":
        from specfix.checker.report import Report

        return Report
    raise AttributeError(f"module 'specfix' has no attribute {name!r}")
