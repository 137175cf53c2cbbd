"""What a check says: every finding with its rule, what was skipped and why, and the verdict."""

from __future__ import annotations

from typing import Literal

from specfix.checker.finding import SEVERITIES, Finding, Severity
from specfix.deployment import Deployment
from specfix.engines import Engine
from specfix.record import record

Verdict = Literal["pass", "warn", "fail", "unknown"]


@record(frozen=True)
class Reported:
    """A finding and the rule that made it. ``help`` is the command that prints the rule's page."""

    code: str
    name: str
    severity: Severity
    finding: Finding
    evidence: tuple[str, ...]

    @property
    def help(self) -> str:
        return f"specfix explain {self.code}"


@record(frozen=True)
class Skipped:
    """A rule that could not be decided, and the fact that it lacks."""

    code: str
    reason: str


@record(frozen=True)
class Upgrade:
    """What another release changes for one deployment: the findings that come and go."""

    before: Report
    after: Report
    new: tuple[Reported, ...]
    gone: tuple[Reported, ...]

    @property
    def title(self) -> str:
        return f"{self.before.engine} -> {self.after.engine}"


@record(frozen=True)
class Remark:
    """What a run has to say beside its reports, which decides nothing. ``file`` is "" where it is about none."""

    message: str
    file: str = ""
    line: int | None = None


@record(frozen=True)
class Checked:
    """One of several checks: what it was of, and its report, or why there is none."""

    name: str
    report: Report | None = None
    problem: str = ""

    @property
    def verdict(self) -> str:
        return self.report.verdict if self.report else "unreadable"

    @property
    def why(self) -> str:
        return without_name(self.problem, self.name)


@record(frozen=True)
class Upgraded:
    """One of several upgrades: what it is of, and what it changes, or why that is not known."""

    name: str
    upgrade: Upgrade | None = None
    problem: str = ""

    @property
    def title(self) -> str:
        return self.upgrade.title if self.upgrade else ""

    @property
    def why(self) -> str:
        return without_name(self.problem, self.name)


@record(frozen=True)
class Report:
    """The outcome of one check. ``findings`` are sorted: worst first, then by code and place. ``left_out``: those that
    are let pass, each with the reason."""

    deployment: Deployment
    engine: Engine
    findings: tuple[Reported, ...]
    skipped: tuple[Skipped, ...]
    left_out: tuple[tuple[Reported, str], ...] = ()

    @property
    def verdict(self) -> Verdict:
        """fail with an error, warn with a warning, else unknown where a rule was skipped, else pass."""
        worst = {reported.severity for reported in self.findings}
        if "error" in worst:
            return "fail"
        if "warning" in worst:
            return "warn"
        return "unknown" if self.skipped else "pass"

    def reaches(self, severity: Severity) -> bool:
        """Whether any finding is at or above ``severity``."""
        limit = SEVERITIES.index(severity)
        return any(SEVERITIES.index(reported.severity) <= limit for reported in self.findings)


def without_name(problem: str, name: str) -> str:
    """What the problem is, without the name that stands before it."""
    rest = problem.removeprefix(name)
    return rest.lstrip(",: ") if name and rest != problem and rest[:1] in {",", ":", " "} else problem
