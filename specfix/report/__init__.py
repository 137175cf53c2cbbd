"""What a check found, in words or data: one module per output format."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Literal, get_args

from specfix.report.secrets import hidden, told, told_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specfix.checker.report import Checked, Remark, Report, Upgrade, Upgraded
    from specfix.report.terminal import Terminal

Format = Literal["text", "json", "sarif", "github", "junit", "markdown"]
FORMATS: tuple[Format, ...] = get_args(Format)


def render(report: Report, form: Format, terminal: Terminal, remarks: Sequence[Remark] = ()) -> str:
    """The whole output for one check, with its last newline. ``terminal`` shapes the text form only."""
    report = told(report)
    if form == "text":
        from specfix.report import text

        return text.render(report, terminal, remarks)
    module = import_module(f"specfix.report.{'json_' if form == 'json' else form}")
    rendered: str = module.render(report, remarks)
    return rendered


def render_upgrades(
    upgrades: Sequence[Upgraded], form: Format, terminal: Terminal, remarks: Sequence[Remark] = ()
) -> str:
    """What other releases change: the findings that are new, and those that are gone."""
    upgrades = [
        replace(each, upgrade=each.upgrade and upgrade_told(each.upgrade), problem=hidden(each.problem))
        for each in upgrades
    ]
    if form == "text":
        from specfix.report import text

        return text.render_upgrades(upgrades, terminal, remarks)
    if form in ("json", "github", "markdown"):
        module = import_module(f"specfix.report.{'json_' if form == 'json' else form}")
        rendered: str = module.render_upgrades(upgrades, remarks)
        return rendered
    from specfix.checker.report import Checked

    new = [
        Checked(
            ": ".join(filter(None, [each.name, each.title])),
            replace(each.upgrade.after, findings=each.upgrade.new) if each.upgrade else None,
            each.problem,
        )
        for each in upgrades
    ]
    return render_all(new, form, terminal, remarks)


def upgrade_told(upgrade: Upgrade) -> Upgrade:
    """What an upgrade changes, as it may be told."""
    before, after = told(upgrade.before), told(upgrade.after)
    shown = {id(old): new for old, new in zip(upgrade.after.findings, after.findings, strict=True)}
    shown |= {id(old): new for old, new in zip(upgrade.before.findings, before.findings, strict=True)}
    new, gone = (tuple(shown[id(each)] for each in changed) for changed in (upgrade.new, upgrade.gone))
    return replace(upgrade, before=before, after=after, new=new, gone=gone)


def render_all(checks: Sequence[Checked], form: Format, terminal: Terminal, remarks: Sequence[Remark] = ()) -> str:
    """The whole output for several checks, in their order."""
    checks = list(told_all(checks))
    if form == "text":
        from specfix.report import text

        return text.render_all(checks, terminal, remarks)
    module = import_module(f"specfix.report.{'json_' if form == 'json' else form}")
    rendered: str = module.render_all(checks, remarks)
    return rendered
