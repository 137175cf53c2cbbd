"""Workflow commands of GitHub Actions: each finding becomes an annotation at its line."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from specfix.checker.report import Checked
from specfix.report.place import NO_FILES, below, option
from specfix.report.terminal import printable
from specfix.report.text import outcome, titled
from specfix.report.words import skipped_by_reason, summary, symptom, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specfix.checker.report import Remark, Report, Reported, Upgraded
    from specfix.deployment import Deployment

LINE = re.compile(r", line (\d+)")  # after the file's name, in what a reader says of it
COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report, remarks: Sequence[Remark] = ()) -> str:
    lines = [
        f"::notice title=specfix assumed::{escape(printable(assumption))}"
        for assumption in report.deployment.assumptions
    ]
    lines += [annotation(report.deployment, reported) for reported in report.findings]
    for reason, codes in skipped_by_reason(report).items():
        lines.append(plain(f"skipped {' '.join(codes)}, not known: {reason}"))
    lines += [remark(each) for each in remarks]
    return "\n".join([*lines, f"specfix: {summary(report)}"]) + "\n"


def render_all(checks: Sequence[Checked], remarks: Sequence[Remark] = ()) -> str:
    parts = []
    for each in checks:
        if each.report:
            parts.append(f"{plain(each.name)}\n{render(each.report)}")
        else:
            parts.append(unreadable(each) + "\n")
    parts += [f"{remark(each)}\n" for each in remarks]
    return "".join([*parts, f"specfix: {tally(checks)}\n"])


def render_upgrades(upgrades: Sequence[Upgraded], remarks: Sequence[Remark] = ()) -> str:
    """The new findings of each, and what it comes to."""
    lines = []
    for each in upgrades:
        if each.upgrade is None:
            lines.append(unreadable(Checked(each.name, None, each.problem)))
            continue
        lines += [annotation(each.upgrade.after.deployment, reported) for reported in each.upgrade.new]
        lines.append(plain(f"{titled(each)}: {outcome(each)}"))
    return "".join(f"{line}\n" for line in [*lines, *map(remark, remarks)])


def unreadable(checked: Checked) -> str:
    place = ""
    if Path(checked.name).is_file():
        line = LINE.match(checked.problem.removeprefix(checked.name))
        place = f"{where(checked.name)},line={line[1] if line else 1},"
    title = escape_property(f"specfix could not check {checked.name}")
    return f"::error {place}title={title}::{escape(printable(checked.why))}"


def where(file: str) -> str:
    folder = os.environ.get("GITHUB_WORKSPACE") or "."
    return f"file={escape_property(below(file, folder) or file)}"


def remark(said: Remark) -> str:
    place = f"{where(said.file)},line={said.line or 1}," if said.file else ""
    return f"::notice {place}title=specfix::{escape(printable(said.message))}"


def annotation(deployment: Deployment, reported: Reported) -> str:
    """``::error file=…,line=…,title=…::message``; what stands in no file says so in the message instead."""
    found = reported.finding
    folder = os.environ.get("GITHUB_WORKSPACE") or "."
    places = [found.location, *found.related]
    # a service shows what lies in the checkout: a launch there, where the model does not
    place = next((each for each in places if each.file not in NO_FILES and below(each.file, folder)), found.location)
    title = f"{reported.code} {reported.name}"
    parts = [found.message, f"What happens: {symptom(reported)}"]
    properties = {"title": title}
    if found.location.file in NO_FILES:
        parts.insert(0, option(deployment, found.location))
    if place.file not in NO_FILES:
        file = below(place.file, folder) or place.file
        properties = {"file": file, "line": str(place.line or 1), "title": title}
    if found.repair:
        parts.append(f"Repair, {found.repair.safety}: {found.repair.summary}")
    parts.append(f"More: {reported.help}")
    named = ",".join(f"{key}={escape_property(value)}" for key, value in properties.items())
    message = "\n".join(printable(part) for part in parts)
    return f"::{COMMANDS[reported.severity]} {named}::{escape(message)}"


def plain(text: str) -> str:
    """A line of the log that is no command: one begins a line with ``::``, of an older kind ``##[`` anywhere in it."""
    text = printable(text).replace("##[", "# #[")
    return f"  {text}".replace("::", ": :", 1) if text.lstrip().startswith("::") else text


def escape(data: str) -> str:
    return data.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(value: str) -> str:
    return escape(printable(value)).replace(":", "%3A").replace(",", "%2C")
