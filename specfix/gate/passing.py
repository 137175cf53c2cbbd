"""Findings that are let pass, and two releases side by side."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from specfix.checker.report import Remark, Upgrade
from specfix.gate.baseline import Key, key
from specfix.report.words import count

if TYPE_CHECKING:
    from specfix.checker.report import Report, Reported
    from specfix.gate.settings import Ignore


@dataclass
class Passing:
    """Which findings are let pass: those that an ignore names, for its reason, and those of the baseline (``known``).

    ``known`` is used up: two findings of a kind need two entries. ``matched`` counts what each ignore names, also after
    its end; ``skipped`` holds the rules that were not decided."""

    ignores: Sequence[Ignore]
    known: Counter[Key]
    today: datetime.date
    matched: Counter[Ignore] = field(default_factory=Counter)
    skipped: set[str] = field(default_factory=set)

    def report(self, report: Report) -> Report:
        """The report without what is let pass, which is said with its reason."""
        kept, left = [], list(report.left_out)
        self.skipped.update(each.code for each in report.skipped)
        for reported in report.findings:
            named = [each for each in self.ignores if reported.code.startswith(each.code)]
            self.matched.update(named)
            ignore = next((each for each in named if not each.ended(self.today)), None)
            if ignore is not None:
                left.append((reported, ignore.reason))
            elif self.known[key(report, reported)] > 0:
                self.known[key(report, reported)] -= 1
                left.append((reported, "in the baseline"))
            else:
                kept.append(reported)
        return replace(report, findings=tuple(kept), left_out=tuple(left))

    def ended(self) -> Iterator[Remark]:
        """What is to be said of ignores that hold no longer."""
        for each in self.ignores:
            if each.ended(self.today):
                found = self.matched[each]
                again = f": what it named is reported again ({count(found, 'finding')})" if found else ""
                yield Remark(f"the ignore of {each.code} ended on {each.until}{again}", each.file, each.line)

    def idle(self) -> Iterator[Remark]:
        """The same of ignores that nothing came under."""
        for each in self.ignores:
            undecided = any(code.startswith(each.code) for code in self.skipped)
            if not (self.matched[each] or undecided or each.ended(self.today)):
                yield Remark(f"the ignore of {each.code} named none of the findings", each.file, each.line)


def upgrade(before: Report, after: Report) -> Upgrade:
    """What the release of ``after`` changes against that of ``before``."""
    old = Counter(identity(before, each) for each in before.findings)
    now = Counter(identity(after, each) for each in after.findings)
    return Upgrade(
        before,
        after,
        tuple(each for each in after.findings if not old[identity(after, each)]),
        tuple(each for each in before.findings if not now[identity(before, each)]),
    )


def identity(report: Report, reported: Reported) -> tuple[Key, str, str]:
    """The same finding with the same weight: what was a warning and becomes an error has changed."""
    return key(report, reported), reported.severity, reported.finding.phase
