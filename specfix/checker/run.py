"""Run rules over facts: each fact computed once, a missing one skips, a crash is a finding."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from operator import itemgetter
from typing import Any

from specfix.checker.finding import SEVERITIES, Finding
from specfix.checker.report import Report, Reported, Skipped
from specfix.checker.rule import Rule
from specfix.deployment import Deployment, Location
from specfix.engines import Engine
from specfix.errors import CannotCheck, MissingFact, NotApplicable
from specfix.record import record

Provider = Callable[..., Any]
CRASHED = "INT001"  # the rule engine's own code


class Facts:
    """Facts by name, as pytest's fixtures: given ones, and derived ones computed from them on first use. Of one that is
    not to be had the MissingFact or NotApplicable is kept that says why."""

    def __init__(self, given: Mapping[str, Any], providers: Mapping[str, Provider]) -> None:
        self._values: dict[str, Any] = {}
        self._absent: dict[str, MissingFact | NotApplicable] = {}
        self._providers = providers
        for name, value in given.items():
            self._keep(name, value)

    def arguments(self, function: Callable[..., Any]) -> tuple[Any, ...] | MissingFact | NotApplicable:
        """The facts that ``function``'s parameters name, or why it cannot be called. A parameter with a default is left
        to it where the fact is not to be had: the function can do without."""
        required, optional, take = parameters(function)
        values = self._values
        for name in required:
            if name not in values and not self._has(name):
                return self._absent[name]
        if not optional:
            return take(values)
        others = [values[name] if name in values or self._has(name) else default for name, default in optional]
        return (*take(values), *others)

    def _has(self, name: str) -> bool:
        """Whether the fact is to be had; it is computed when this is first asked."""
        if name not in self._values and name not in self._absent:
            self._keep(name, self._computed(self._providers[name]))
        return name in self._values

    def _keep(self, name: str, value: Any) -> None:
        if isinstance(value, (MissingFact, NotApplicable)):
            self._absent[name] = value
        else:
            self._values[name] = value

    def _computed(self, provider: Provider) -> Any:
        found = self.arguments(provider)
        if not isinstance(found, tuple):
            return found
        try:
            return provider(*found)
        except (MissingFact, NotApplicable) as absent:
            return absent.with_traceback(None)  # it is kept, and need not keep all that was at hand


@cache
def parameters(
    function: Callable[..., Any],
) -> tuple[tuple[str, ...], tuple[tuple[str, Any], ...], Callable[[Mapping[str, Any]], tuple[Any, ...]]]:
    """Of a plain function: the parameters that have no default, the others each with its own, and what takes the first
    out of a mapping. Cheaper than inspect.signature."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    first = len(names) - len(defaults)
    required = names[:first]
    take = itemgetter(*required) if first > 1 else lambda values: tuple(values[name] for name in required)
    return required, tuple(zip(names[first:], defaults, strict=True)), take


@record(frozen=True)
class Chosen:
    """The rules, and which of them are asked for: those whose code starts with a prefix in ``select``, if any, and with
    none in ``ignore``."""

    rules: Sequence[Rule]
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @cached_property
    def ordered(self) -> tuple[Rule, ...]:
        """Each rule after those that it requires."""
        by_code = {rule.code: rule for rule in self.rules}
        found: dict[str, Rule] = {}
        begun: set[str] = set()

        def add(rule: Rule) -> None:
            if rule.code not in begun:
                begun.add(rule.code)
                for code in rule.requires:
                    if code in by_code:
                        add(by_code[code])
                found[rule.code] = rule

        for rule in self.rules:
            add(rule)
        return tuple(found.values())

    @cached_property
    def wanted(self) -> frozenset[str]:
        """The codes of the rules that are asked for."""
        return frozenset(rule.code for rule in self.rules if chosen(rule.code, self.select, self.ignore))

    def shows(self, code: str, found: Reported) -> bool:
        """Whether a finding of the rule ``code`` is asked for. A crash bears a code of its own: it is shown where that
        or the rule's is asked for, and neither is ignored."""
        asked = code in self.wanted or (
            found.code != code and chosen(code, (), self.ignore) and chosen(found.code, self.select, ())
        )
        return asked and chosen(found.code, (), self.ignore)


def run(deployment: Deployment, engine: Engine, asked: Chosen, providers: Mapping[str, Provider]) -> Report:
    """Run the rules. One that another rule requires counts for that even where it is ignored."""
    facts = Facts(deployment.facts() | {"engine": engine}, providers)
    failed: set[str] = set()  # rules that found an error
    shown: list[Reported] = []
    skipped: list[Skipped] = []
    for rule in asked.ordered:
        if failed and not failed.isdisjoint(rule.requires):
            continue
        found: list[Reported] = []
        try:
            arguments = facts.arguments(rule.predicate)
            if not isinstance(arguments, tuple):
                if isinstance(arguments, MissingFact):
                    skipped.append(Skipped(rule.code, str(arguments)))
                continue
            for finding in rule.predicate(*arguments):
                if not mended(finding, deployment):
                    found.append(reported(rule, finding))
        except NotApplicable:
            pass
        except MissingFact as missing:
            skipped.append(Skipped(rule.code, str(missing)))
        except CannotCheck:  # what all rules rest on is damaged
            raise
        except Exception as crash:  # a rule's bug must not hide what the others found
            found.append(crashed(rule, crash))
            skipped.append(Skipped(rule.code, "the rule failed (INT001)"))
        if found:
            shown += [each for each in found if asked.shows(rule.code, each)]
            if any(each.severity == "error" for each in found):
                failed.add(rule.code)
    unknown = sorted((skip for skip in skipped if skip.code in asked.wanted), key=lambda skip: skip.code)
    return Report(deployment, engine, tuple(sorted(shown, key=order)), tuple(unknown))


def chosen(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    """Whether ``code`` is asked for; an empty ``select`` asks for all."""
    return (not select or code.startswith(select)) and not code.startswith(ignore)


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
