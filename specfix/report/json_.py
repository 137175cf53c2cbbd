"""``specfix/report-v1``: the report for programs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from specfix import __version__
from specfix.report.secrets import masked

if TYPE_CHECKING:
    from specfix.checker.report import Report, Reported
    from specfix.deployment import Location

SCHEMA = "specfix/report-v1"


def render(report: Report) -> str:
    return json.dumps(document(report), indent=2) + "\n"


def document(report: Report) -> dict[str, Any]:
    """Plain values, with the schema's keys in the schema's order. Options not given are null."""
    deployment = report.deployment
    serving = deployment.serving
    return {
        "schema": SCHEMA,
        "version": __version__,
        "deployment": {
            "target": deployment.target.reference,
            "draft": deployment.draft.reference if deployment.draft else None,
            "method": serving.method,
            "engine": {
                "name": report.engine.name,
                "version": report.engine.version,
                "source": report.engine.source,
            },
            "hardware": asdict(deployment.hardware) if deployment.hardware else None,
            "serving": asdict(replace(serving, env=masked(serving.env))),
            "assumptions": list(deployment.assumptions),
        },
        "verdict": report.verdict,
        "findings": [found(reported) for reported in report.findings],
        "skipped": [{"code": skipped.code, "reason": skipped.reason} for skipped in report.skipped],
    }


def found(reported: Reported) -> dict[str, Any]:
    finding = reported.finding
    repair = finding.repair
    return {
        "code": reported.code,
        "name": reported.name,
        "severity": reported.severity,
        "phase": finding.phase,
        "confidence": finding.confidence,
        "message": finding.message,
        "location": place(finding.location),
        "related": [place(location) for location in finding.related],
        "repair": repair and {"safety": repair.safety, "summary": repair.summary, "surfaces": list(repair.surfaces)},
        "evidence": list(reported.evidence),
        "help": reported.help,
    }


def place(location: Location) -> dict[str, Any]:
    return {"file": location.file, "pointer": location.pointer, "line": location.line}
