"""Markdown for a step summary or a comment: a table of what was found, and of each finding what to do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from specfix.report.terminal import printable
from specfix.report.text import heading, remark, titled, where
from specfix.report.words import count, skipped_by_reason, summary, symptom, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specfix.checker.report import Checked, Remark, Report, Reported, Upgraded
    from specfix.deployment import Deployment

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")
MENTION = re.compile(r"(?<!\w)@(?=\w)")  # a service would notify whoever is called so
LINK = re.compile(
    r"(?:https?|ftp):(?=//)|\bwww(?=\.)|(?<=\w)@(?=\w)|\bmailto:|\bxmpp:", re.IGNORECASE
)  # made without asking
LIST = re.compile(r"^(?:[-+=](?=\s|[-+=]|$)|\d+(?=[.)]))")  # begins a list, or underlines a heading


def render(report: Report, remarks: Sequence[Remark] = ()) -> str:
    lines = [f"### specfix: {plain(summary(report))}", "", *body(report)]
    lines += [f"- {plain(remark(each))}" for each in remarks]
    return "\n".join(lines).rstrip("\n") + "\n"


def body(report: Report) -> list[str]:
    """What a report says below its heading."""
    lines = [plain(heading(report)), ""]
    if report.findings:
        lines += ["| | rule | what happens | where |", "|---|---|---|---|"]
        lines += [row(report.deployment, reported) for reported in report.findings]
        lines.append("")
    for reported in report.findings:
        lines += [*told(reported), ""]
    for reported, why in report.left_out:
        lines.append(f"- let pass {reported.code} {plain(reported.name)}: {plain(why)}")
    for reason, codes in skipped_by_reason(report).items():
        lines.append(f"- skipped {' '.join(codes)}, not known: {plain(reason)}")
    return lines


def render_all(checks: Sequence[Checked], remarks: Sequence[Remark] = ()) -> str:
    """A table of the launches, then each of which something was found."""
    lines = [f"### specfix: {tally(checks)}"]
    if checks:
        lines += ["", "| | launch | what was found |", "|---|---|---|"]
    for each in checks:
        told = summary(each.report).partition(": ")[2] if each.report else each.why
        lines.append(f"| **{each.verdict}** | {plain(each.name)} | {plain(told)} |")
    if remarks:
        lines += ["", *(f"- {plain(remark(each))}" for each in remarks)]
    parts = [
        "\n".join([f"#### {plain(each.name)}", "", *body(each.report)]).rstrip("\n")
        for each in checks
        if each.report and each.report.findings
    ]
    return "\n\n".join(["\n".join(lines), *parts]) + "\n"


def render_upgrades(upgrades: Sequence[Upgraded], remarks: Sequence[Remark] = ()) -> str:
    """A table of the launches, then the new findings of each."""
    new = sum(len(each.upgrade.new) for each in upgrades if each.upgrade)
    lines = [
        f"### specfix: {count(new, 'new finding')}",
        "",
        "| launch | new | gone | as before |",
        "|---|---|---|---|",
    ]
    for each in upgrades:
        cells = [each.why, "", ""]
        if each.upgrade:
            same = len(each.upgrade.after.findings) - len(each.upgrade.new)
            cells = [codes(each.upgrade.new), codes(each.upgrade.gone), str(same)]
        lines.append("| " + " | ".join(map(plain, [titled(each), *cells])) + " |")
    if remarks:
        lines += ["", *(f"- {plain(remark(each))}" for each in remarks)]
    for each in upgrades:
        if each.upgrade and each.upgrade.new:
            after = replace(each.upgrade.after, findings=each.upgrade.new)
            lines += ["", f"#### {plain(titled(each))}", "", *"\n".join(body(after)).rstrip("\n").split("\n")]
    return "\n".join(lines) + "\n"


def codes(found: Sequence[Reported]) -> str:
    return ", ".join(dict.fromkeys(each.code for each in found)) or "0"


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
    shown = SPECIAL.sub(r"\\\1", printable(" ".join(text.split())))
    shown = LIST.sub(lambda match: f"{match[0]}<!-- -->" if match[0].isdigit() else f"\\{match[0]}", shown)
    return LINK.sub(r"\g<0><!-- -->", MENTION.sub("@<!-- -->", shown))
