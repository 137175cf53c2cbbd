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
from specfix.report.text import remark
from specfix.report.words import skipped_by_reason, symptom

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specfix.checker.finding import Finding
    from specfix.checker.report import Remark, Report, Reported
    from specfix.deployment import Deployment, Location

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "note": "note"}
ROOT = "SRCROOT"


def render(report: Report, remarks: Sequence[Remark] = ()) -> str:
    return log([Checked("", report)], remarks)


def render_all(checks: Sequence[Checked], remarks: Sequence[Remark] = ()) -> str:
    """One run of them all: a service keeps the results of one run a tool."""
    return log(checks, remarks)


def log(checks: Sequence[Checked], remarks: Sequence[Remark]) -> str:
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run(checks, remarks)]}, indent=2) + "\n"


def run(checks: Sequence[Checked], remarks: Sequence[Remark] = ()) -> dict[str, Any]:
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
                "toolExecutionNotifications": [
                    *(note for each in checks for note in notifications(each)),
                    *(notified(remark(each)) for each in remarks),
                ],
            }
        ],
        "results": once(
            result(report, reported, codes.index(reported.code)) for report in reports for reported in report.findings
        ),
        "columnKind": "unicodeCodePoints",
    }


def once(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results without those that are another to the letter: launches may share a draft."""
    return list({json.dumps(each, sort_keys=True): each for each in results}.values())


def notifications(checked: Checked) -> list[dict[str, Any]]:
    of = f"{checked.name}: " if checked.name else ""
    if checked.report is None:
        return [notified(f"{of}{checked.why}", "error")]
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
    first, *others = in_checkout_first(found)
    related = [{**located(deployment, place), "id": number} for number, place in enumerate(others, 1)]
    told = {
        "ruleId": reported.code,
        "ruleIndex": index,
        "level": LEVELS[reported.severity],
        "message": {"text": "\n".join(printable(part) for part in parts)},
        "locations": [located(deployment, first)],
        "properties": {"phase": found.phase, "confidence": found.confidence},
    }
    return told | ({"relatedLocations": related} if related else {})


def in_checkout_first(found: Finding) -> list[Location]:
    """The places of a finding; before a file from elsewhere, such as the Hub's cache, one that a service can show."""
    places = [found.location, *found.related]
    if found.location.file in NO_FILES or below(found.location.file, ".") is not None:
        return places
    here = [each for each in places if each.file not in NO_FILES and below(each.file, ".") is not None]
    return [*here[:1], *(each for each in places if each not in here[:1])]


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
        return {"uri": quoted(within), "uriBaseId": ROOT}
    return {"uri": quoted(file)}


def quoted(path: str) -> str:
    """A path as a URI's; bytes that are no text are those of the file system."""
    return quote(path.replace(os.sep, "/"), errors="surrogateescape")
