"""Markdown for a step summary or a comment: a table of what was found, and of each finding what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from specfix.report.terminal import printable
from specfix.report.text import heading, where
from specfix.report.words import skipped_by_reason, summary, symptom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specfix.checker.report import Checked, Report, Reported
    from specfix.deployment import Deployment

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")
MENTION = re.compile(r"(?<!\w)@(?=\w)")  # a service would notify whoever is called so


def render(report: Report) -> str:
    lines = [f"### specfix: {plain(summary(report))}", "", plain(heading(report)), ""]
    if report.findings:
        lines += ["| | rule | what happens | where |", "|---|---|---|---|"]
        lines += [row(report.deployment, reported) for reported in report.findings]
        lines.append("")
    for reported in report.findings:
        lines += [*told(reported), ""]
    for reason, codes in skipped_by_reason(report).items():
        lines.append(f"- skipped {' '.join(codes)}, not known: {plain(reason)}")
    return "\n".join(lines).rstrip("\n") + "\n"


def render_all(checks: Sequence[Checked]) -> str:
    lines = ["### specfix", "", "| launch | verdict | |", "|---|---|---|"]
    for each in checks:
        told = summary(each.report).partition(": ")[2] if each.report else each.problem
        lines.append(f"| {plain(each.name)} | **{each.verdict}** | {plain(told)} |")
    parts = [
        f"#### {plain(each.name)}\n\n{render(each.report)}" for each in checks if each.report and each.report.findings
    ]
    return "\n\n".join(["\n".join(lines), *(part.rstrip("\n") for part in parts)]) + "\n"


def row(deployment: Deployment, reported: Reported) -> str:
    rule = f"{reported.code} {reported.name}"
    cells = (
        f"**{reported.severity}**",
        plain(rule),
        plain(symptom(reported)),
        plain(where(deployment, reported.finding.location)),
    )
    return "| " + " | ".join(cells) + " |"


def told(reported: Reported) -> list[str]:
    found = reported.finding
    lines = [f"**{reported.code}** {plain(found.message)}"]
    if found.repair:
        lines += ["", f"Repair, {found.repair.safety}: {plain(found.repair.summary)}"]
    return [*lines, "", f"More: `{reported.help}`"]


def plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line: messages quote what strangers wrote."""
    return MENTION.sub("@<!-- -->", SPECIAL.sub(r"\\\1", printable(" ".join(text.split()))))
