"""Lists: the rules, and what is known of a machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from specfix.report.terminal import Terminal, printable

if TYPE_CHECKING:
    from specfix.checker.rule import Rule
    from specfix.deployment import Hardware


def rules_text(rules: Iterable[Rule], terminal: Terminal) -> str:
    """A line per rule; summaries that do not fit go on below."""
    return table([(rule.code, rule.name, rule.severity, rule.summary.replace("``", "`")) for rule in rules], terminal)


def rules_json(rules: Iterable[Rule]) -> str:
    found = [
        {
            "code": rule.code,
            "name": rule.name,
            "severity": rule.severity,
            "summary": rule.summary,
            "requires": list(rule.requires),
            "evidence": list(rule.evidence),
        }
        for rule in rules
    ]
    return json.dumps({"schema": "specfix/rules-v1", "rules": found}, indent=2) + "\n"


def hardware_text(hardware: Hardware, terminal: Terminal) -> str:
    rows = []
    for field in fields(hardware):
        value = getattr(hardware, field.name)
        if field.name in ("cpu_flags", "packages") and value is not None:
            value = " ".join(value) or "none"
        rows.append((field.name, "not known" if value is None else str(value)))
    return table(rows, terminal)


def table(rows: Sequence[Sequence[str]], terminal: Terminal, margin: str = "") -> str:
    """Columns two spaces apart, the first one strong, the last one wrapped."""
    safe = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*safe, strict=True)][:-1]
    indent = margin + " " * sum(width + 2 for width in widths)
    lines = []
    for *cells, last in safe:
        first, *more = terminal.wrap(last, indent) or [indent]
        start = "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
        head = terminal.paint("strong", start[: widths[0]]) + start[widths[0] :]
        lines += [margin + head + first.removeprefix(indent), *more]
    return "".join(line.rstrip() + "\n" for line in lines)
