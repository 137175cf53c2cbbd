"""What a check found, in words or data: one module per output format."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specfix.checker.report import Checked, Report, Upgrade
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


def render_upgrades(upgrades: Sequence[tuple[str, Upgrade]], form: Format, terminal: Terminal) -> str:
    """What other releases change: the findings that are new, and those that are gone."""
    if form == "json":
        from specfix.report import json_

        return json_.render_upgrades(upgrades)
    if form == "text":
        from specfix.report import text

        return text.render_upgrades(upgrades, terminal)
    from specfix.checker.report import Checked

    new = [
        Checked(": ".join(filter(None, [name, upgrade.title])), replace(upgrade.after, findings=upgrade.new))
        for name, upgrade in upgrades
    ]
    return render_all(new, form, terminal)


def render_all(checks: Sequence[Checked], form: Format, terminal: Terminal) -> str:
    """The whole output for several checks, in their order."""
    if form == "text":
        from specfix.report import text

        return text.render_all(checks, terminal)
    module = import_module(f"specfix.report.{'json_' if form == 'json' else form}")
    rendered: str = module.render_all(checks)
    return rendered
