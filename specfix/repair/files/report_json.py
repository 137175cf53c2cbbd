"""report.json: what was found, done, and left (``specfix/fix-v1``)."""

from __future__ import annotations

import json
from typing import Any

from specfix import __version__
from specfix.checker.report import Report
from specfix.repair.plan import Plan
from specfix.report.json_ import document as report_document
from specfix.report.json_ import found as finding_document
from specfix.report.secrets import found as as_told
from specfix.report.secrets import hidden, known, told

SCHEMA = "specfix/fix-v1"


def render(report: Report, plan: Plan) -> str:
    return json.dumps(document(report, plan), indent=2) + "\n"


def document(report: Report, plan: Plan) -> dict[str, Any]:
    """``found`` is the specfix/report-v1 of what was given; ``changes`` what was made of it; ``done`` and ``left``
    findings as there, those left with the reason; ``verdict`` and ``skipped`` are of the result."""
    values = known(report.deployment.serving)
    after = report_document(told(plan.after))
    return {
        "schema": SCHEMA,
        "version": __version__,
        "verdict": after["verdict"],
        "changes": [
            {"code": change.code, "surface": change.surface, "name": change.name, "value": change.value}
            for change in plan.changes.values()
        ],
        "done": [finding_document(as_told(found, values)) for found in plan.done],
        "left": [
            {**finding_document(as_told(left.reported, values)), "reason": hidden(left.reason, values)}
            for left in plan.left
        ],
        "skipped": after["skipped"],
        "found": report_document(told(report)),
    }
