"""``specfix/report-v1``: the report for programs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from specfix import __version__
from specfix.deployment.serving import ANY_FLAG
from specfix.report.secrets import masked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specfix.checker.report import Checked, Remark, Report, Reported, Upgraded
    from specfix.deployment import Location, Serving

SCHEMA = "specfix/report-v1"
MANY = "specfix/reports-v1"
UPGRADES = "specfix/upgrades-v1"


def render(report: Report, remarks: Sequence[Remark] = ()) -> str:
    return json.dumps(document(report) | told_beside(remarks), indent=2) + "\n"


def told_beside(remarks: Sequence[Remark]) -> dict[str, Any]:
    """What the run has to say beside its reports; no key where that is nothing."""
    return {"remarks": [asdict(each) for each in remarks]} if remarks else {}


def render_all(checks: Sequence[Checked], remarks: Sequence[Remark] = ()) -> str:
    """``specfix/reports-v1``: a report each, or null and why."""
    reports = [
        {"name": each.name, "report": document(each.report) if each.report else None, "problem": each.problem or None}
        for each in checks
    ]
    whole = {"schema": MANY, "version": __version__, "reports": reports, **told_beside(remarks)}
    return json.dumps(whole, indent=2) + "\n"


def render_upgrades(upgrades: Sequence[Upgraded], remarks: Sequence[Remark] = ()) -> str:
    """``specfix/upgrades-v1``: of each the new findings and those that are gone, and the whole report after it."""
    told = [
        {
            "name": each.name,
            "from": str(upgrade.before.engine),
            "to": str(upgrade.after.engine),
            "new": [found(reported) for reported in upgrade.new],
            "gone": [found(reported) for reported in upgrade.gone],
            "report": document(upgrade.after),
        }
        for each in upgrades
        if (upgrade := each.upgrade)
    ]
    lost = [{"name": each.name, "problem": each.problem} for each in upgrades if not each.upgrade]
    whole = {"schema": UPGRADES, "version": __version__, "upgrades": told}
    return json.dumps({**whole, **({"unreadable": lost} if lost else {}), **told_beside(remarks)}, indent=2) + "\n"


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
            "serving": told(serving),
            "assumptions": list(deployment.assumptions),
        },
        "verdict": report.verdict,
        "findings": [found(reported) for reported in report.findings],
        "skipped": [{"code": skipped.code, "reason": skipped.reason} for skipped in report.skipped],
        "let_pass": [{**found(reported), "reason": why} for reported, why in report.left_out],
    }


def told(serving: Serving) -> dict[str, Any]:
    """The options; what is known only where it runs as it is written there."""
    values = asdict(replace(serving, env=masked(serving.env), places={}, unknown={}, misfits=()))
    for name in ("devices", "places", "unknown", "misfits"):
        del values[name]
    for name, text in serving.unknown.items():
        if name == ANY_FLAG:
            continue
        block, _, key = name.rpartition(".")
        home = "speculative" if block else "env" if name.isupper() else "flags"
        (values if name in values else values[home])[key] = text
    return values


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
