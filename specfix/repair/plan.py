"""What will be changed, what that mends, and what is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from specfix.checker.finding import Finding, Repair, Surface
from specfix.checker.report import Report, Reported
from specfix.errors import CannotCheck

Recheck = Callable[["Changes"], Report]


@dataclass(frozen=True, slots=True)
class Change:
    """One value on one surface, and the code of the finding that asked for it first. See ``Repair.changes``."""

    surface: Surface
    name: str
    value: object
    code: str


Changes = Mapping[tuple[Surface, str], Change]


@dataclass(frozen=True, slots=True)
class Left:
    """A finding that stays, and why."""

    reported: Reported
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """``done`` were mended by ``changes``. ``left`` is all that is found of the result, in the order of a report;
    ``after`` is that report."""

    changes: Changes
    done: tuple[Reported, ...]
    left: tuple[Left, ...]
    after: Report


def make_plan(report: Report, recheck: Recheck, *, unsafe: bool = False) -> Plan:
    """The plan for the findings of ``report``. ``recheck`` checks the deployment with the changes made.

    A rule that waits for another one speaks only when that one is content, so there may be several rounds.
    Raises CannotCheck where a change does not mend what it is for: that is a bug of the rule.
    """
    changes: dict[tuple[Surface, str], Change] = {}
    done: list[Reported] = []
    current = report
    while wanted := [found for found in current.findings if obstacle(found, changes, unsafe) is None]:
        now = []
        for found in wanted:
            if obstacle(found, changes, unsafe) is None:  # not taken by an earlier one of this round
                now.append(found)
                for surface, name, value in steps(found):
                    changes.setdefault((surface, name), Change(surface, name, value, found.code))
        after = recheck(changes)
        still = {identity(found) for found in after.findings}
        for found in now:
            if identity(found) in still:
                raise CannotCheck(
                    f"the repair of {found.code} does not mend it ({found.finding.message}); nothing was written. This "
                    "is a bug of specfix or of a plugin: please report it"
                )
        done += [found for found in current.findings if identity(found) not in still]
        current = after
    left = tuple(Left(found, obstacle(found, changes, unsafe) or "") for found in current.findings)
    return Plan(changes, tuple(done), left, current)


def keeping_draft(report: Report) -> Report:
    """The report as it concerns a draft that is served from where it is: what its config needs is done by the shim."""
    return replace(report, findings=tuple(kept(found) for found in report.findings))


def kept(found: Reported) -> Reported:
    """The finding with a repair that leaves the draft's files alone."""
    repair = found.finding.repair
    if repair is None or all(surface != "draft_config" for surface, _, _ in repair.changes):
        return found
    if repair.by_shim:
        summary = "the shim does it when the engine reads the draft's config; its files stay as they are"
        repair = replace(repair, summary=summary, surfaces=("shim",), changes=repair.by_shim)
    else:
        repair = Repair("manual", f"the draft is to stay as it is; without that: {repair.summary}", repair.surfaces)
    return replace(found, finding=replace(found.finding, repair=repair))


def steps(found: Reported) -> tuple[tuple[Surface, str, object], ...]:
    return found.finding.repair.changes if found.finding.repair else ()


def obstacle(found: Reported, changes: Changes, unsafe: bool) -> str | None:
    """Why a finding is not mended; None where it will be."""
    repair = found.finding.repair
    if repair is None:
        return "no repair is known"
    if repair.safety == "manual" or not repair.changes:
        return f"for you to decide: {repair.summary}"
    for surface, name, value in repair.changes:
        taken = changes.get((surface, name))
        if taken is not None and taken.value != value:
            return f"its repair sets {name} to {value!r}, and that of {taken.code} sets it to {taken.value!r}"
    if repair.safety == "unsafe" and not unsafe:
        return f"unsafe, done with --unsafe only: {repair.summary}"
    return None


def identity(found: Reported) -> tuple[str, str, tuple[tuple[Surface, str], ...]]:
    """One finding across checks: its words may hold what was changed, and its file may have moved."""
    place: Finding = found.finding
    return found.code, place.location.pointer, tuple((surface, name) for surface, name, _ in steps(found))
