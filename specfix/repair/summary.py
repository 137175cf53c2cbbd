"""What was done, what is left and why, and what to run next: for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from specfix.checker.report import Report, Reported
from specfix.repair.plan import Change, Plan
from specfix.report.place import shown
from specfix.report.secrets import found as as_told
from specfix.report.secrets import hidden, known, told
from specfix.report.terminal import Terminal, printable
from specfix.report.text import heading
from specfix.report.words import count


def render(
    report: Report,
    plan: Plan,
    out: Path,
    written: bool,
    note: str | None,
    terminal: Terminal,
    inside: Sequence[str] | None = None,
) -> str:
    """The whole text, with its last newline. ``note`` is one more thing to know of the folder; ``inside`` what to do
    with a launch file that was repaired."""
    values = known(report.deployment.serving)
    lines = [heading(told(report))]
    for each in plan.done:
        found = as_told(each, values)
        lines += ["", *entry("done", "good", found, done(found, plan), terminal)]
    for left in plan.left:
        found, why = as_told(left.reported, values), hidden(left.reason, values)
        lines += ["", *entry("left", found.severity, found, [why], terminal)]
    place = printable(shown(str(out)))
    state = "written" if written else "as it was: it held all this already"
    mended = f"{count(len(plan.done), 'finding')} mended" if plan.done else "nothing to mend"
    script = f"{'./' if place.startswith('-') else ''}{place}/launch.sh"  # not to be taken for an option
    lines += ["", f"{mended}, {len(plan.left)} left; {place} is {state}", *([printable(note)] if note else [])]
    lines += [f"next: bash {shlex.quote(script)}"] if inside is None else map(printable, inside)
    return "\n".join(lines) + "\n"


def entry(label: str, style: str, found: Reported, more: list[str], terminal: Terminal) -> Iterator[str]:
    """A headline, what was found, and what became of it."""
    yield terminal.paint(style, f"{label} {found.severity}[{found.code}]") + " " + terminal.paint("strong", found.name)
    yield from terminal.wrap(found.finding.message, "  ")
    for text in more:
        yield from terminal.wrap(text, "    ", "  = ")


def done(found: Reported, plan: Plan) -> list[str]:
    """The repair with its changes; or that others' changes mended it as well."""
    repair = found.finding.repair
    keys = [(surface, name) for surface, name, _ in repair.changes] if repair else []
    changes = [plan.changes[key] for key in keys if key in plan.changes]
    if repair is None or not changes:
        return ["gone with the other repairs"]
    return [f"{repair.safety}: {repair.summary}", *map(said, changes)]


def said(change: Change) -> str:
    """One change, by its surface."""
    match change.surface:
        case "draft_config" | "target_config":
            return f"{change.surface.removesuffix('_config')} config.json: {change.name} is {change.value}"
        case "engine_args":
            return f"--{change.name} {change.value}" if change.value is not None else f"no --{change.name}"
        case "env":
            return f"{change.name}={change.value}" if change.value is not None else f"{change.name} unset"
        case "shim":
            return f"shim: {change.name}"
    return f"speculative config: {change.name} is {change.value}"
