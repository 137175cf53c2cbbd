"""JUnit XML, for the services that show test results: a test case for each finding and each rule that was skipped, and
one that passes where nothing was found.

An error is a failure; a warning or a note passes, with what it says as the case's output.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from specfix.report.text import heading, where
from specfix.report.words import symptom

if TYPE_CHECKING:
    from specfix.checker.report import Report, Reported
    from specfix.deployment import Deployment

# what XML 1.0 cannot hold, even escaped
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    cases = [case(report.deployment, reported) for reported in report.findings]
    cases += [
        f'    <testcase classname="specfix" name={attribute(skip.code)}>\n'
        f"      <skipped message={attribute(f'not known: {skip.reason}')}/>\n    </testcase>\n"
        for skip in report.skipped
    ]
    if not cases:
        cases = ['    <testcase classname="specfix" name="all rules"/>\n']
    failures = sum(reported.severity == "error" for reported in report.findings)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{len(report.skipped)}"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="specfix" {counts}>\n'
        f"  <testsuite name={attribute(heading(report))} {counts}>\n{''.join(cases)}  </testsuite>\n"
        "</testsuites>\n"
    )


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
    return escape(FORBIDDEN.sub("\ufffd", given))


def attribute(given: str) -> str:
    return quoteattr(FORBIDDEN.sub("\ufffd", given), {"\n": "&#10;"})
