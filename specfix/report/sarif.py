"""SARIF 2.1.0, as code scanning services take it: one run, one result a finding.

What stands in no file (a flag, a variable, the machine) is named as a logical location; since a service shows nothing
that has no file, its physical location is the config of the target.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from specfix import __version__
from specfix.checker.report import Checked
from specfix.report.place import NO_FILES, below, option
from specfix.report.terminal import printable
from specfix.report.words import skipped_by_reason, symptom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specfix.checker.report import Report, Reported
    from specfix.deployment import Deployment, Location

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "note": "note"}
ROOT = "SRCROOT"


def render(report: Report) -> str:
    return log([Checked("", report)])


def render_all(checks: Sequence[Checked]) -> str:
    """One run of them all: a service keeps the results of one run a tool."""
    return log(checks)


def log(checks: Sequence[Checked]) -> str:
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run(checks)]}, indent=2) + "\n"


def run(checks: Sequence[Checked]) -> dict[str, Any]:
    """The run. What was assumed or skipped, and what could not be read, becomes a notification of it."""
    reports = [each.report for each in checks if each.report]
    rules = {reported.code: reported for report in reports for reported in report.findings}
    codes = sorted(rules)
    driver = {"name": "specfix", "version": __version__, "rules": [described(rules[code]) for code in codes]}
    return {
        "tool": {"driver": driver},
        "originalUriBaseIds": {ROOT: {"description": {"text": "the folder in which specfix was started"}}},
        "invocations": [
            {
                "executionSuccessful": len(reports) == len(checks),
                "toolExecutionNotifications": [note for each in checks for note in notifications(each)],
            }
        ],
        "results": [
            result(report, reported, codes.index(reported.code)) for report in reports for reported in report.findings
        ],
        "columnKind": "unicodeCodePoints",
    }


def notifications(checked: Checked) -> list[dict[str, Any]]:
    of = f"{checked.name}: " if checked.name else ""
    if checked.report is None:
        return [notified(f"{of}{checked.problem}", "error")]
    told = [f"assumed: {assumption}" for assumption in checked.report.deployment.assumptions]
    told += [f"skipped {' '.join(codes)}, not known: {why}" for why, codes in skipped_by_reason(checked.report).items()]
    return [notified(of + text) for text in told]


def notified(text: str, level: str = "note") -> dict[str, Any]:
    return {"level": level, "message": {"text": printable(text)}}


def described(reported: Reported) -> dict[str, Any]:
    evidence = ", ".join(reported.evidence)
    return {
        "id": reported.code,
        "name": reported.name,
        "shortDescription": {"text": reported.name.replace("-", " ")},
        "help": {"text": f"{reported.help}" + (f"\nEvidence: {evidence}" if evidence else "")},
        "defaultConfiguration": {"level": LEVELS[reported.severity]},
    }


def result(report: Report, reported: Reported, index: int) -> dict[str, Any]:
    found = reported.finding
    deployment = report.deployment
    parts = [found.message, f"What happens: {symptom(reported)}."]
    if found.repair:
        parts.append(f"Repair, {found.repair.safety}: {found.repair.summary}.")
    related = [{**located(deployment, place), "id": number} for number, place in enumerate(found.related, 1)]
    told = {
        "ruleId": reported.code,
        "ruleIndex": index,
        "level": LEVELS[reported.severity],
        "message": {"text": "\n".join(printable(part) for part in parts)},
        "locations": [located(deployment, found.location)],
        "properties": {"phase": found.phase, "confidence": found.confidence},
    }
    return told | ({"relatedLocations": related} if related else {})


def located(deployment: Deployment, place: Location) -> dict[str, Any]:
    """A place in a file; of what is in none, what it is."""
    if place.file in NO_FILES:
        named = printable(option(deployment, place))
        logical = [{"name": named, "kind": "parameter"}]
        return {
            "physicalLocation": {"artifactLocation": artifact(deployment.target.config.file)},
            "logicalLocations": logical,
        }
    physical: dict[str, Any] = {"artifactLocation": artifact(place.file)}
    if place.line is not None:
        physical["region"] = {"startLine": place.line}
    logical = [{"fullyQualifiedName": printable(place.pointer)}] if place.pointer else []
    return {"physicalLocation": physical} | ({"logicalLocations": logical} if logical else {})


def artifact(file: str) -> dict[str, Any]:
    """A file below the working directory by its path from there, another by its own."""
    within = below(file, ".")
    if within is not None:
        return {"uri": quote(within.replace(os.sep, "/")), "uriBaseId": ROOT}
    return {"uri": quote(file.replace(os.sep, "/"))}
