"""JUnit XML, for the services that show test results: a test case for each finding and each rule that was skipped, and
one that passes where nothing was found.

An error is a failure; a warning or a note passes, with what it says as the case's output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from specfix.report.terminal import printable
from specfix.report.text import heading, where
from specfix.report.words import symptom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specfix.checker.report import Checked, Remark, Report, Reported
    from specfix.deployment import Deployment


def render(report: Report, remarks: Sequence[Remark] = ()) -> str:  # no test is about a remark
    return whole([suite(report)])


def render_all(checks: Sequence[Checked], remarks: Sequence[Remark] = ()) -> str:
    return whole([suite(each.report, each.name) if each.report else unreadable(each) for each in checks])


def whole(suites: list[Suite]) -> str:
    counts = " ".join(
        f'{name}="{sum(getattr(each, name) for each in suites)}"' for name in ("tests", "failures", "errors", "skipped")
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="specfix" {counts}>\n'
        f"{''.join(each.text() for each in suites)}</testsuites>\n"
    )


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    cases: tuple[str, ...]
    failures: int = 0
    errors: int = 0
    skipped: int = 0

    @property
    def tests(self) -> int:
        return len(self.cases)

    def text(self) -> str:
        counts = f'tests="{self.tests}" failures="{self.failures}" errors="{self.errors}" skipped="{self.skipped}"'
        return f"  <testsuite name={attribute(self.name)} {counts}>\n{''.join(self.cases)}  </testsuite>\n"


def unreadable(checked: Checked) -> Suite:
    error = f'<error type="unreadable" message={attribute(checked.why)}/>'
    case = f'    <testcase classname="specfix" name="could be read">\n      {error}\n    </testcase>\n'
    return Suite(checked.name, (case,), errors=1)


def suite(report: Report, name: str = "") -> Suite:
    cases = [case(report.deployment, reported) for reported in report.findings]
    cases += [
        f'    <testcase classname="specfix" name={attribute(skip.code)}>\n'
        f"      <skipped message={attribute(f'not known: {skip.reason}')}/>\n    </testcase>\n"
        for skip in report.skipped
    ]
    if not cases:
        cases = ['    <testcase classname="specfix" name="all rules"/>\n']
    failures = sum(reported.severity == "error" for reported in report.findings)
    title = f"{name}: {heading(report)}" if name else heading(report)
    return Suite(title, tuple(cases), failures, 0, len(report.skipped))


def case(deployment: Deployment, reported: Reported) -> str:
    found = reported.finding
    place = where(deployment, found.location)
    lines = [found.message, f"What happens: {symptom(reported)}", f"At: {place}"]
    lines += [f"See also: {where(deployment, other)}" for other in found.related]
    if found.repair:
        lines.append(f"Repair, {found.repair.safety}: {found.repair.summary}")
    lines.append(f"More: {reported.help}")
    told = text("\n".join(lines))
    if reported.severity == "error":
        body = f'<failure type="{reported.code}" message={attribute(found.message)}>{told}</failure>'
    else:
        body = f"<system-out>{text(reported.severity)}: {told}</system-out>"
    name = attribute(f"{reported.code} {reported.name}: {place}")
    return f'    <testcase classname="specfix" name={name}>\n      {body}\n    </testcase>\n'


def text(given: str) -> str:
    return escape(shown(given))


def attribute(given: str) -> str:
    return quoteattr(shown(given), {"\n": "&#10;"})


def shown(given: str) -> str:
    """Lines without control characters, most of which XML cannot hold even where they are escaped."""
    return "\n".join(map(printable, given.split("\n")))
