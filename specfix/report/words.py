"""The words that more than one format uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specfix.checker.finding import Phase
    from specfix.checker.report import Checked, Report, Reported

VERDICTS = ("unreadable", "fail", "warn", "unknown", "pass")
SYMPTOMS: dict[Phase, str] = {  # of an error
    "config": "refuses to start",
    "load": "fails while loading the models",
    "warmup": "dies in warm-up, before it is ready",
    "runtime": "fails while serving",
    "silent": "serves, but accepts nothing or is wrong",
}
MOMENTS: dict[Phase, str] = {  # of a warning
    "config": "seen at start",
    "load": "seen while loading",
    "warmup": "seen in warm-up",
    "runtime": "seen while serving",
    "silent": "serves, but gains less than it could",
}


def symptom(reported: Reported) -> str:
    """What the user would see, in a few words."""
    if reported.severity == "note":
        return "worth knowing"
    words = (SYMPTOMS if reported.severity == "error" else MOMENTS)[reported.finding.phase]
    return f"{words} (likely)" if reported.finding.confidence == "likely" else words


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def summary(report: Report) -> str:
    """One line: the verdict and how it came about."""
    counts = [
        count(found, severity)
        for severity in ("error", "warning", "note")
        if (found := sum(reported.severity == severity for reported in report.findings))
    ]
    skipped = f"{count(len(report.skipped), 'rule')} skipped" if report.skipped else ""
    left = f"{count(len(report.left_out), 'finding')} let pass" if report.left_out else ""
    return f"{report.verdict}: " + "; ".join(filter(None, [", ".join(counts) or "nothing found", skipped, left]))


def tally(checks: Sequence[Checked]) -> str:
    """How many launches, and of which verdict, the worst first."""
    found = [each.verdict for each in checks]
    counts = [f"{found.count(each)} {each}" for each in VERDICTS if each in found]
    launches = "1 launch" if len(found) == 1 else f"{len(found)} launches"
    return f"{launches}: {', '.join(counts)}" if counts else "no launch with speculative decoding"


def skipped_by_reason(report: Report) -> dict[str, list[str]]:
    """The lacking facts, each with the rules that wait for it."""
    reasons: dict[str, list[str]] = {}
    for skipped in report.skipped:
        reasons.setdefault(skipped.reason, []).append(skipped.code)
    return reasons
