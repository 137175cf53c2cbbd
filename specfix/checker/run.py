"""Run rules over facts: each fact computed once, a missing one skips, a crash is a finding."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from specfix.checker.finding import SEVERITIES, Finding
from specfix.checker.report import Report, Reported, Skipped
from specfix.checker.rule import Rule
from specfix.deployment import Deployment, Location
from specfix.engines import Engine
from specfix.errors import CannotCheck, MissingFact, NotApplicable

Provider = Callable[..., Any]
CRASHED = "INT001"  # the rule engine's own code


class Facts:
    """Facts by name, as pytest's fixtures: given ones, and derived ones computed from them on first use."""

    def __init__(self, given: Mapping[str, Any], providers: Mapping[str, Provider]) -> None:
        self._values: dict[str, Any] = dict(given)
        self._providers = providers

    def __getitem__(self, name: str) -> Any:
        """Raises MissingFact or NotApplicable, the same one each time, where the fact is not to be had."""
        if name not in self._values:
            provider = self._providers[name]
            try:
                self._values[name] = provider(**self.arguments(provider))
            except (MissingFact, NotApplicable) as absent:
                self._values[name] = absent
        value = self._values[name]
        if isinstance(value, (MissingFact, NotApplicable)):
            raise value
        return value

    def arguments(self, function: Callable[..., Any]) -> dict[str, Any]:
        """The facts that ``function``'s parameters name. One with a default is left to it where the fact is not to
        be had: the function can do without."""
        names, optional = parameters(function)
        found = {}
        for name in names:
            try:
                found[name] = self[name]
            except (MissingFact, NotApplicable):
                if name not in optional:
                    raise
        return found


def parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names of a plain function's parameters, and of those that have a default; cheaper than inspect.signature."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = len(function.__defaults__ or ())
    return names, frozenset(names[len(names) - defaults :])


def run(
    deployment: Deployment,
    engine: Engine,
    rules: Sequence[Rule],
    providers: Mapping[str, Provider],
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> Report:
    """Run ``rules`` (those whose code starts with a prefix in ``select``, if any, and with none in ``ignore``).

    A rule that another one requires is run before it, and counts for that even where it is ignored.
    """
    facts = Facts(deployment.facts() | {"engine": engine}, providers)
    by_code = {rule.code: rule for rule in rules}
    outcomes: dict[str, list[Reported]] = {}
    skipped: dict[str, Skipped] = {}

    def visit(rule: Rule) -> None:
        if rule.code in outcomes:
            return
        outcomes[rule.code] = []
        for code in rule.requires:
            if code in by_code:
                visit(by_code[code])
        if any(found.severity == "error" for code in rule.requires for found in outcomes.get(code, ())):
            return
        try:
            for finding in rule(**facts.arguments(rule.predicate)):
                if not mended(finding, deployment):
                    outcomes[rule.code].append(reported(rule, finding))
        except NotApplicable:
            pass
        except MissingFact as missing:
            skipped[rule.code] = Skipped(rule.code, str(missing))
        except CannotCheck:  # what all rules rest on is damaged
            raise
        except Exception as crash:  # a rule's bug must not hide what the others found
            outcomes[rule.code].append(crashed(rule, crash))
            skipped[rule.code] = Skipped(rule.code, "the rule failed (INT001)")

    for rule in rules:
        visit(rule)
    wanted = {rule.code for rule in rules if chosen(rule.code, select, ignore)}
    # a crash bears a code of its own: it is shown where that or the rule's is asked for, and neither is ignored
    shown = (
        found
        for code, found_here in outcomes.items()
        for found in found_here
        if (code in wanted or (found.code != code and chosen(code, (), ignore) and chosen(found.code, select, ())))
        and chosen(found.code, (), ignore)
    )
    findings = sorted(shown, key=order)
    return Report(deployment, engine, tuple(findings), tuple(skipped[code] for code in sorted(wanted & skipped.keys())))


def chosen(code: str, select: Iterable[str], ignore: Iterable[str]) -> bool:
    """Whether ``code`` is asked for; an empty ``select`` asks for all."""
    selected = tuple(select)
    return (not selected or code.startswith(selected)) and not code.startswith(tuple(ignore))


def mended(finding: Finding, deployment: Deployment) -> bool:
    """Whether the shim that the server will load holds every change of the finding's repair, either way of it."""
    if finding.repair is None:
        return False
    patches = deployment.patches
    return any(
        changes
        and all(
            surface == "shim" and name in patches and covers(patches[name], value) for surface, name, value in changes
        )
        for changes in (finding.repair.changes, finding.repair.by_shim)
    )


def covers(settings: Mapping[str, Any], wanted: Any) -> bool:
    """Whether a patch with ``settings`` does all of what is ``wanted``: numbers at least as large, the same places."""
    return all(
        settings.get(key, 0) >= value if isinstance(value, int) else same_place(str(settings.get(key)), str(value))
        for key, value in wanted.items()
    )


def same_place(one: str, other: str) -> bool:
    """Whether two names of a model mean the same folder, or are the same."""
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def check_codes(codes: Iterable[str], rules: Sequence[Rule]) -> None:
    """Raise CannotCheck for a code or prefix that no rule bears."""
    for code in codes:
        if not any(known.startswith(code) for known in (CRASHED, *(rule.code for rule in rules))):
            raise CannotCheck(f"no rule's code starts with {code!r}; `specfix rules` lists them")


def reported(rule: Rule, finding: Finding) -> Reported:
    """The finding with its rule's name, severity and evidence."""
    return Reported(rule.code, rule.name, finding.severity or rule.severity, finding, rule.evidence)


def crashed(rule: Rule, crash: Exception) -> Reported:
    """INT001: the rule itself failed."""
    message = f"the rule {rule.code} failed: {type(crash).__name__}: {crash}. This is a bug of specfix or of a plugin."
    finding = Finding(message, Location(rule.predicate.__module__), "config", "certain")
    return Reported(CRASHED, "rule-crashed", "warning", finding, ())


def order(found: Reported) -> tuple[int, str, str, str]:
    """Worst first, then by code and place."""
    place = found.finding.location
    return SEVERITIES.index(found.severity), found.code, place.file, place.pointer
