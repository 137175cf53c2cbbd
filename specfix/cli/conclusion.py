"""What a check comes to: the exit status, what is let pass, what an upgrade changes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from specfix.cli.options import FailOn
from specfix.cli.outcome import Outcome
from specfix.errors import CannotCheck

if TYPE_CHECKING:
    from specfix.checker.report import Checked, Reported
    from specfix.gate.settings import Ignore, Settings
    from specfix.report import Format
    from specfix.report.terminal import Terminal


@dataclass(frozen=True, slots=True)
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

    def outcome(self, by_release: Sequence[Sequence[Checked]], form: Format, write_baseline: Path | None) -> Outcome:
        """What is printed of the checks on one release, or on several in turn, and the exit status."""
        from specfix.report import render, render_all
        from specfix.report.terminal import Terminal

        if write_baseline is not None:
            self.write_baseline(by_release[-1], write_baseline)
        passed = [self.let_pass(checks) for checks in by_release]
        terminal = Terminal.of(sys.stdout)
        if len(passed) > 1:
            return self.compared(passed, form, terminal)
        (checks,) = passed
        if len(checks) == 1 and checks[0].report:
            return Outcome(render(checks[0].report, form, terminal), self.status(checks))
        return Outcome(render_all(checks, form, terminal), self.status(checks))

    def let_pass(self, checks: Sequence[Checked]) -> list[Checked]:
        """The checks without the findings that are ignored for a reason, or known."""
        if not self.ignores and self.baseline is None:
            return list(checks)
        import datetime
        from collections import Counter

        from specfix.checker.registry import load_rules
        from specfix.checker.run import check_codes
        from specfix.gate.baseline import read_baseline
        from specfix.gate.passing import let_pass

        check_codes([each.code for each in self.ignores], load_rules())
        known = Counter() if self.baseline is None else read_baseline(self.baseline)
        today = datetime.date.today()
        return [
            replace(each, report=let_pass(each.report, self.ignores, known, today)) if each.report else each
            for each in checks
        ]

    def write_baseline(self, checks: Sequence[Checked], file: Path) -> None:
        """Write every finding to the file, whole or not at all. Raises CannotCheck."""
        from specfix.gate.baseline import written

        unfinished = file.with_name(f".{file.name}.new")
        try:
            unfinished.write_text(written(checks), "utf-8")
            unfinished.replace(file)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise CannotCheck(f"the baseline {file} cannot be written: {error.strerror or error}") from None

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

    def compared(self, passed: Sequence[Sequence[Checked]], form: Format, terminal: Terminal) -> Outcome:
        """What each release changes against the one before it; new findings alone decide."""
        from specfix.gate.passing import upgrade
        from specfix.report import render_upgrades

        problem = next((each.problem for checks in passed for each in checks if each.report is None), None)
        if problem is not None:
            raise CannotCheck(problem)
        upgrades = []
        for before, after in pairwise(passed):
            for old, new in zip(before, after, strict=True):
                if old.report and new.report:
                    upgrades.append((new.name, upgrade(old.report, new.report)))
        status = int(any(self.reached(each.new) for _, each in upgrades))
        return Outcome(render_upgrades(upgrades, form, terminal), status)
