"""What a check found, in words or data: one module per output format."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from specfix.checker.report import Report
    from specfix.report.terminal import Terminal

Format = Literal["text", "json", "sarif", "github", "junit", "markdown"]
FORMATS: tuple[Format, ...] = get_args(Format)


def render(report: Report, form: Format, terminal: Terminal) -> str:
    """The whole output for one check, with its last newline. ``terminal`` shapes the text form only."""
    if form == "text":
        from specfix.report import text

        return text.render(report, terminal)
    module = import_module(f"specfix.report.{'json_' if form == 'json' else form}")
    rendered: str = module.render(report)
    return rendered
