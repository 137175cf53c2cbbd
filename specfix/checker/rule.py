"""What a rule is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from specfix.checker.finding import SEVERITIES, Finding, Severity
from specfix.record import record

Predicate = Callable[..., Iterator[Finding]]
CODE = re.compile(r"[A-Z]{3}\d{3}")


@record(frozen=True)
class Rule:
    """A predicate with its name and its sources.

    ``evidence`` holds upstream threads (``owner/repo#number``) or files of an engine's source; ``requires`` the codes
    of rules that must have found no error, so that one cause gives one finding. Calling a rule calls its predicate.
    """

    code: str
    name: str
    severity: Severity
    evidence: tuple[str, ...]
    requires: tuple[str, ...]
    predicate: Predicate

    @property
    def summary(self) -> str:
        """The predicate's docstring: one line."""
        return (self.predicate.__doc__ or "").strip().split("\n", 1)[0]

    @property
    def page(self) -> Path:
        """The Markdown page beside the rule's file."""
        return Path(self.predicate.__code__.co_filename).with_suffix(".md")

    def __call__(self, **facts: Any) -> Iterator[Finding]:
        return self.predicate(**facts)


def rule(
    code: str, name: str, *, severity: Severity, evidence: Iterable[str], requires: Iterable[str] = ()
) -> Callable[[Predicate], Rule]:
    """Make a rule of a generator function whose parameters name the facts that it needs.

    Raises ValueError where ``code`` is not three capitals and three digits, or ``severity`` is unknown.
    """
    if not CODE.fullmatch(code):
        raise ValueError(f"a rule's code is three capitals and three digits, not {code!r}")
    if severity not in SEVERITIES:
        raise ValueError(f"a rule's severity is one of {', '.join(SEVERITIES)}, not {severity!r}")

    def make(predicate: Predicate) -> Rule:
        return Rule(code, name, severity, tuple(evidence), tuple(requires), predicate)

    return make
