"""Findings that are let pass, and two releases side by side."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from specfix.checker.report import Upgrade
from specfix.gate.baseline import Key, key

if TYPE_CHECKING:
    from specfix.checker.report import Report, Reported
    from specfix.gate.settings import Ignore


def let_pass(report: Report, ignores: Sequence[Ignore], known: Counter[Key], today: datetime.date) -> Report:
    """The report without what is ignored for a reason, and without what the baseline (``known``) holds.

    What is left out is said with its reason. ``known`` is used up: two findings of a kind need two entries.
    """
    kept, left = [], list(report.left_out)
    for reported in report.findings:
        ignore = next((each for each in ignores if each.holds(reported.code, today)), None)
        if ignore is not None:
            left.append((reported, ignore.reason))
        elif known[key(report, reported)] > 0:
            known[key(report, reported)] -= 1
            left.append((reported, "in the baseline"))
        else:
            kept.append(reported)
    return replace(report, findings=tuple(kept), left_out=tuple(left))


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
