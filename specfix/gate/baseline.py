"""A baseline: the findings that a project already has, so that a gate speaks of new ones alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specfix import __version__
from specfix.deployment.json_text import read_json_object, show
from specfix.errors import CannotCheck
from specfix.report.place import NO_FILES, below

if TYPE_CHECKING:
    from specfix.checker.report import Checked, Report, Reported

SCHEMA = "specfix/baseline-v1"
LIMIT = 50_000_000  # bytes
Key = tuple[str, str, str, str, str]


def read_baseline(file: Path) -> Counter[Key]:
    """The findings that the file holds, and how often. Raises CannotCheck."""
    if not file.exists():
        raise CannotCheck(f"the baseline {file} does not exist: write it with --write-baseline")
    values, _ = read_json_object(file, f"the baseline {file}", LIMIT)
    found = values.get("findings")
    if values.get("schema") != SCHEMA or not isinstance(found, list):
        raise CannotCheck(f"{file} is no {SCHEMA}: its schema is {show(values.get('schema'))}")
    known: Counter[Key] = Counter()
    for each in found:
        match each:
            case {
                "code": str(code),
                "target": str(target),
                "draft": str(draft),
                "file": str(name),
                "pointer": str(pointer),
            }:
                known[(code, target, draft, name, pointer)] += 1
            case _:
                raise CannotCheck(f"{file} lists {show(each)}, which is no finding")
    return known


def written(checks: Sequence[Checked]) -> str:
    """The baseline that holds every finding of these checks."""
    found = [
        dict(zip(("code", "target", "draft", "file", "pointer"), key(each.report, reported), strict=True))
        for each in checks
        if each.report
        for reported in each.report.findings
    ]
    document: dict[str, Any] = {"schema": SCHEMA, "version": __version__, "findings": found}
    return json.dumps(document, indent=2) + "\n"


def key(report: Report, reported: Reported) -> Key:
    """What makes two findings the same: the rule, the pair, and the place. Lines and words change too easily."""
    draft = report.deployment.draft
    place = reported.finding.location
    file = place.file if place.file in NO_FILES else below(place.file, ".") or place.file
    return (
        reported.code,
        named(report.deployment.target.reference),
        named(draft.reference) if draft else "",
        file.replace("\\", "/"),
        place.pointer,
    )


def named(reference: str) -> str:
    """A model's name: from here where it is a folder here."""
    return (below(reference, ".") or reference) if Path(reference).exists() else reference
