"""Lists: the rules, and what is known of a release or of a machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from specfix.report.terminal import Terminal, printable
from specfix.report.words import count

if TYPE_CHECKING:
    from specfix.checker.rule import Rule
    from specfix.deployment import Hardware
    from specfix.engines import Engine


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


def engine_text(engine: Engine, terminal: Terminal) -> str:
    """What is known of one release, in ten lines or so."""
    support = (engine.eagle.support or {}).values()
    units = {"the proposer's": engine.blocks.proposer, "its table's": engine.blocks.table}
    rows = [
        ("model runner", runners(engine)),
        ("on a CPU", cpu(engine)),
        ("methods", methods(engine.methods.methods)),
        ("architectures", str(len(engine.methods.architectures))),
        ("EAGLE3 targets", f"{sum(map(bool, support))} of these architectures"),
        ("draft positions", positions(engine)),
        ("V1 drafting", f"stops at the draft's own length: {answer(engine.lengths.v1_guard)}"),
        ("served length", f"lowered to the draft's own: {answer(engine.lengths.limits_target)}"),
        ("KV block unit", ", ".join(f"{whose}: {unit or 'not known'}" for whose, unit in units.items())),
    ]
    reasons: dict[str, list[str]] = {}
    for fact, reason in engine.unknown.items():
        reasons.setdefault(reason, []).append(fact)
    rows += [("not known", f"{', '.join(facts)}: {reason}") for reason, facts in reasons.items()]
    return f"{terminal.paint('strong', str(engine))} ({printable(engine.source)})\n" + table(rows, terminal, "  ")


def methods(names: Sequence[str]) -> str:
    """Names of methods; the many older names of MTP are counted only."""
    plain = [name for name in names if not name.endswith("_mtp")]
    aliases = len(names) - len(plain)
    return ", ".join([*plain, *([f"{aliases} names that mean mtp"] if aliases else [])]) or "none"


def runners(engine: Engine) -> str:
    if {step.then for step in engine.runner.steps} == {"V1"}:
        return "V1"
    steps = count(len(engine.runner.steps), "condition")
    return f"V1 or V2: {steps}, and {count(len(engine.runner.unsupported), 'feature')} that V2 lacks"


def positions(engine: Engine) -> str:
    raised, types = engine.lengths.raised_methods, engine.lengths.raised_rope_types
    if not raised:
        return "not known" if raised is None else "stay as the draft's config says"
    only = f", where rope_type is {', '.join(types)}" if types else ""
    return f"raised to max_model_len for {methods(raised)}{only}"


def cpu(engine: Engine) -> str:
    if "cpu.refuses" in engine.unknown:
        return "not known"
    if engine.cpu.refuses:
        return f"refuses speculation: {engine.cpu.refuses}"
    broken = sorted({stand_in.kernel for stand_in in engine.cpu.stand_ins})
    return f"calls that fail: {', '.join(broken)}" if broken else "speculation is let through"


def answer(fact: bool | None) -> str:
    return "not known" if fact is None else "yes" if fact else "no"


def engines_text(shipped: Sequence[str], installed: str | None) -> str:
    """The releases to choose from."""
    return f"installed here: {printable(installed or 'none')}\nknown releases: {', '.join(shipped) or 'none'}\n"


def hardware_text(hardware: Hardware, terminal: Terminal) -> str:
    rows = []
    for field in fields(hardware):
        value = getattr(hardware, field.name)
        if field.name == "cpu_flags" and value:
            value = " ".join(value)
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
