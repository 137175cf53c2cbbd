"""What a check found, in words or data: one module per output format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from specfix.checker.report import Report
    from specfix.report.terminal import Terminal

Format = Literal["text", "json", "github"]
FORMATS: tuple[Format, ...] = get_args(Format)


def render(report: Report, form: Format, terminal: Terminal) -> str:
    """The whole output for one check, with its last newline. ``terminal`` shapes the text form only."""
    if form == "json":
        from specfix.report import json_

        return json_.render(report)
    if form == "github":
        from specfix.report import github

        return github.render(report)
    from specfix.report import text

    return text.render(report, terminal)
