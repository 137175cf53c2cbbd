"""What a check comes to: the exit status, what is let pass, what an upgrade changes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from specfix.cli.options import FailOn
from specfix.cli.outcome import Outcome
from specfix.errors import CannotCheck
from specfix.record import record

if TYPE_CHECKING:
    from specfix.checker.report import Checked, Remark, Reported
    from specfix.gate.settings import Ignore, Settings
    from specfix.report import Format
    from specfix.report.terminal import Terminal


def chosen(settings: Settings, select: Sequence[str] | None) -> Sequence[str]:
    """The codes to select: those given, else the settings'. Raises CannotCheck for one of these that no rule bears."""
    if select or not settings.select:
        return select or ()
    from specfix.checking import choose

    try:
        return choose(settings.select, ()).select
    except CannotCheck as problem:
        raise CannotCheck(f"{settings.file}: select: {problem}") from None


@record(frozen=True)
class Gate:
    """``ignores``: of the settings, each with its reason; ``baseline``: the file of known findings."""

    fail_on: FailOn
    strict: bool
    ignores: Sequence[Ignore] = ()
    baseline: Path | None = None

    @classmethod
    def of(cls, settings: Settings, fail_on: FailOn | None, strict: bool | None, baseline: Path | None) -> Gate:
        """What is said on the command line wins over the project's settings."""
        return cls(
            FailOn(settings.fail_on or "error") if fail_on is None else fail_on,
            bool(settings.strict) if strict is None else strict,
            settings.ignore,
            baseline or settings.baseline,
        )

    def outcome(
        self,
        by_release: Sequence[Sequence[Checked]],
        form: Format,
        write_baseline: Path | None,
        remarks: Sequence[Remark] = (),
        *,
        several: bool = False,
        everything: bool = False,
    ) -> Outcome:
        """What is printed of the checks on one release, or on several in turn, and the exit status. ``several``: as
        of several launches, whatever their number; ``everything``: of all that the project serves, so that an ignore
        that names nothing is one too many."""
        from specfix.report import render, render_all
        from specfix.report.terminal import Terminal

        if write_baseline is not None:
            self.write_baseline(by_release[-1], write_baseline)
        passed, more = self.let_pass(by_release, everything and form == "text")
        remarks = [*remarks, *more]
        terminal = Terminal.of(sys.stdout)
        if len(passed) > 1:
            return self.compared(passed, form, terminal, remarks)
        (checks,) = passed
        if not several and len(checks) == 1 and checks[0].report:
            return Outcome(render(checks[0].report, form, terminal, remarks), self.status(checks))
        return Outcome(render_all(checks, form, terminal, remarks), self.status(checks))

    def let_pass(
        self, by_release: Sequence[Sequence[Checked]], everything: bool
    ) -> tuple[list[list[Checked]], list[Remark]]:
        """The checks without the findings that are ignored for a reason, or known, and what is to be said of that."""
        if not self.ignores and self.baseline is None:
            return [list(checks) for checks in by_release], []
        import datetime
        from collections import Counter

        from specfix.gate.baseline import read_baseline
        from specfix.gate.passing import Passing

        self.check_ignores()
        known = Counter() if self.baseline is None else read_baseline(self.baseline)
        passing = Passing(self.ignores, Counter(), datetime.date.today())
        passed = []
        for checks in by_release:
            passing.known = Counter(known)
            passed.append(
                [replace(each, report=passing.report(each.report)) if each.report else each for each in checks]
            )
        whole = everything and all(each.report for checks in by_release for each in checks)
        return passed, [*passing.ended(), *(passing.idle() if whole else ())]

    def check_ignores(self) -> None:
        """Raise CannotCheck for an ignore of a code that no rule bears."""
        from specfix.checker.registry import load_rules
        from specfix.checker.run import check_codes

        for each in self.ignores:
            try:
                check_codes([each.code], load_rules())
            except CannotCheck as problem:
                raise CannotCheck(f"{each.place}: ignore: {problem}") from None

    def write_baseline(self, checks: Sequence[Checked], file: Path) -> None:
        """Write every finding to the file, whole or not at all. Raises CannotCheck."""
        from specfix.gate.baseline import SCHEMA, written
        from specfix.whole import write_whole

        write_whole(file, written(checks), mark=SCHEMA)

    def status(self, checks: Sequence[Checked]) -> int:
        """The exit status: what could not be checked weighs most."""
        if any(each.report is None for each in checks):
            return 2
        reports = [each.report for each in checks if each.report]
        return int(any(self.reached(report.findings) or (self.strict and report.skipped) for report in reports))

    def reached(self, findings: Sequence[Reported]) -> bool:
        from specfix.checker.finding import SEVERITIES

        if self.fail_on is FailOn.never:
            return False
        limit = SEVERITIES.index(self.fail_on.value)
        return any(SEVERITIES.index(reported.severity) <= limit for reported in findings)

    def compared(
        self, passed: Sequence[Sequence[Checked]], form: Format, terminal: Terminal, remarks: Sequence[Remark]
    ) -> Outcome:
        """What each release changes against the one before it; new findings alone decide."""
        from specfix.checker.report import Upgraded
        from specfix.gate.passing import upgrade
        from specfix.report import render_upgrades

        upgrades = []
        for before, after in pairwise(passed):
            for old, new in zip(before, after, strict=True):
                if old.report and new.report:
                    upgrades.append(Upgraded(new.name, upgrade(old.report, new.report)))
                else:
                    upgrades.append(Upgraded(new.name, None, old.problem or new.problem))
        new_ones = [each.upgrade.new for each in upgrades if each.upgrade]
        status = 2 if len(new_ones) < len(upgrades) else int(any(map(self.reached, new_ones)))
        return Outcome(render_upgrades(upgrades, form, terminal, remarks), status)
