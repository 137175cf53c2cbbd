"""What a check says: every finding with its rule, what was skipped and why, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specfix.checker.finding import SEVERITIES, Finding, Severity
from specfix.deployment import Deployment
from specfix.engines import Engine

Verdict = Literal["pass", "warn", "fail", "unknown"]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Skipped:
    """A rule that could not be decided, and the fact that it lacks."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one check. ``findings`` are sorted: worst first, then by code and place."""

    deployment: Deployment
    engine: Engine
    findings: tuple[Reported, ...]
    skipped: tuple[Skipped, ...]

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
