"""The report for people: what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from specfix.report.place import NO_FILES, Excerpt, excerpt, option, shown
from specfix.report.terminal import Terminal, cells, clip, printable
from specfix.report.words import skipped_by_reason, summary, symptom

if TYPE_CHECKING:
    from specfix.checker.report import Checked, Remark, Report, Reported, Upgrade, Upgraded
    from specfix.deployment import Deployment, Location

NOTHING = "nothing to check: no launch with speculative decoding"
VERDICT_STYLES = {"pass": "good", "warn": "warning", "fail": "error", "unknown": "warning"}


def render(report: Report, terminal: Terminal, remarks: Sequence[Remark] = ()) -> str:
    lines = [heading(report)]
    for reported in report.findings:
        lines += ["", *finding(report.deployment, reported, terminal)]
    lines += ["", *skipped(report, terminal), *remarked(remarks, terminal)]
    verdict, _, counts = summary(report).partition(":")
    lines.append(terminal.paint(VERDICT_STYLES[verdict], verdict) + ":" + counts)
    return "\n".join(lines) + "\n"


def render_all(checks: Sequence[Checked], terminal: Terminal, remarks: Sequence[Remark] = ()) -> str:
    """Each report under its name, then a line each."""
    parts = []
    for each in checks:
        title = terminal.paint("strong", f"== {printable(each.name)}")
        body = render(each.report, terminal) if each.report else f"could not check: {printable(each.why)}\n"
        parts.append(f"{title}\n{body}")
    if remarks:
        parts.append("\n".join(remarked(remarks, terminal)))
    return "\n".join([*parts, table(checks, terminal)])


def render_upgrades(upgrades: Sequence[Upgraded], terminal: Terminal, remarks: Sequence[Remark] = ()) -> str:
    """Of each release the new findings in full, and a line for each that is gone; of several a line each at the end."""
    lines = []
    for each in upgrades:
        lines.append(terminal.paint("strong", printable(f"== {titled(each)}")))
        if each.upgrade is None:
            lines += [f"could not check: {printable(each.why)}", ""]
            continue
        for reported in each.upgrade.new:
            lines += [*finding(each.upgrade.after.deployment, reported, terminal), ""]
        for reported in each.upgrade.gone:
            lines.append(f"gone: {reported.severity}[{reported.code}] {reported.name}")
        lines += [changes(each.upgrade), ""]
    lines += remarked(remarks, terminal)
    if len(upgrades) > 1:
        lines += [f"{printable(titled(each))}: {printable(outcome(each))}" for each in upgrades]
    elif not upgrades:
        lines.append(NOTHING)
    return "\n".join(lines).rstrip("\n") + "\n"


def titled(upgraded: Upgraded) -> str:
    return ": ".join(filter(None, [upgraded.name, upgraded.title]))


def outcome(upgraded: Upgraded) -> str:
    return changes(upgraded.upgrade) if upgraded.upgrade else f"could not check: {upgraded.why}"


def changes(upgrade: Upgrade) -> str:
    same = len(upgrade.after.findings) - len(upgrade.new)
    return f"{len(upgrade.new)} new, {len(upgrade.gone)} gone, {same} as before"


def remark(said: Remark) -> str:
    """One line: what is said, and of which place."""
    place = shown(said.file) + (f":{said.line}" if said.line else "") if said.file else ""
    return f"note: {said.message}" + (f" ({place})" if place else "")


def remarked(remarks: Sequence[Remark], terminal: Terminal) -> Iterator[str]:
    for each in remarks:
        yield from terminal.wrap(remark(each), "  ", "")
    if remarks:
        yield ""


def table(checks: Sequence[Checked], terminal: Terminal) -> str:
    """A line each: the verdict, what was checked, and how it came about."""
    if not checks:
        return NOTHING + "\n"
    width = max(len(each.verdict) for each in checks)
    lines = []
    for each in checks:
        style = VERDICT_STYLES.get(each.verdict, "error")
        told = summary(each.report).partition(": ")[2] if each.report else each.why
        verdict = terminal.paint(style, each.verdict) + " " * (width - len(each.verdict))
        lines.append(f"{verdict}  {printable(each.name)}: {printable(told)}")
    return "\n".join(lines) + "\n"


def heading(report: Report) -> str:
    """What is checked, and what was assumed since the user did not say it. One line, however long."""
    deployment = report.deployment
    line = shown(deployment.target.reference)
    if deployment.draft and deployment.draft.reference != deployment.target.reference:
        line += f" with {shown(deployment.draft.reference)}"
    if deployment.serving.method:
        line += f" ({deployment.serving.method})"
    line += f" on {report.engine}, {deployment.hardware.name if deployment.hardware else 'unknown hardware'}"
    if deployment.assumptions:
        line += f". Assumed: {'; '.join(deployment.assumptions)}"
    return printable(line)


def finding(deployment: Deployment, reported: Reported, terminal: Terminal) -> Iterator[str]:
    """Headline, message, the place with its neighbours, the other side of the matter, what to do."""
    found = reported.finding
    label = terminal.paint(reported.severity, f"{reported.severity}[{reported.code}]")
    yield f"{label} {terminal.paint('strong', f'{reported.name}: {symptom(reported)}')}"
    yield from terminal.wrap(found.message, "  ")
    places = [found.location, *found.related]
    excerpts = [excerpt(deployment, place, around=0 if number else 2) for number, place in enumerate(places)]
    margin = 2 + max((len(str(max(part.lines))) for part in excerpts if part), default=1)
    bar = " " * (margin + 1) + terminal.paint("frame", "|")
    for place, part in zip(places, excerpts, strict=True):
        main = place is found.location
        yield (" " * margin + terminal.paint("frame", "-->" if main else ":::") + " " + where(deployment, place))
        if part:
            framed = source(part, margin, reported.severity if main else None, terminal)
            more = [bar] if part.number < max(part.lines) else []  # below the mark itself none is needed
            yield from (bar, *framed, *more) if main else framed
    if found.repair:
        style = "good" if found.repair.safety == "safe" else "warning"
        yield from note(f"repair, {found.repair.safety}:", style, found.repair.summary, margin, terminal)
    if reported.evidence:
        yield from note("evidence:", "quiet", ", ".join(reported.evidence), margin, terminal)
    yield from note("more:", "quiet", reported.help, margin, terminal)


def where(deployment: Deployment, place: Location) -> str:
    """``file:line``, or the option, or the file and the key that it lacks."""
    if place.file in NO_FILES:
        return printable(option(deployment, place))
    if place.line is not None:
        return printable(f"{shown(place.file)}:{place.line}")
    absent = f" (no {place.pointer})" if place.pointer else ""
    return printable(shown(place.file) + absent)


def source(part: Excerpt, margin: int, style: str | None, terminal: Terminal) -> Iterator[str]:
    """Numbered lines in a frame; with a ``style`` the place at fault is underlined."""
    room = terminal.width - margin - 3
    bar = terminal.paint("frame", "|")
    for number, line in part.lines.items():
        label = terminal.paint("frame", f"{number:>{margin}}")
        if number != part.number:
            yield f"{label} {bar} {clip(tidy(line[: room + 1]), room)}".rstrip()
            continue
        before, fault, after = around_fault(line, part.start, part.end, room)
        yield f"{label} {bar} {before}{fault}{after}"
        if style:
            yield f"{' ' * margin} {bar} {' ' * cells(before)}{terminal.paint(style, '^' * cells(fault))}"


def around_fault(line: str, start: int, end: int, room: int) -> tuple[str, str, str]:
    """``line`` before, in and after the fault, cut so that it is seen: a minified file is one long line."""
    fault = clip(tidy(line[start:end][: room + 1]), room - 4)
    after = tidy(line[end : end + room])
    spare = room - cells(fault)
    before = clip(tidy(line[:start][-room:]), spare - min(cells(after), spare // 2), left=True)
    return before, fault, clip(after, spare - cells(before))


def tidy(text: str) -> str:
    return printable(text.replace("\t", "    "))


def note(label: str, style: str, text: str, margin: int, terminal: Terminal) -> Iterator[str]:
    """A line at the foot of a finding."""
    start = " " * (margin + 1) + "= "
    lines = terminal.wrap(text, " " * (margin + 5), f"{start}{label} ")
    yield lines[0].replace(label, terminal.paint(style, label), 1)
    yield from lines[1:]


def skipped(report: Report, terminal: Terminal) -> Iterator[str]:
    for reported, why in report.left_out:
        yield from terminal.wrap(f"let pass {reported.code} {reported.name}: {why}", "  ", "")
    reasons = skipped_by_reason(report)
    for reason, codes in reasons.items():
        yield from terminal.wrap(f"skipped {' '.join(codes)}, not known: {reason}", "  ", "")
    if reasons or report.left_out:
        yield ""
