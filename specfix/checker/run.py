"""Run rules over facts: each fact computed once, a missing one skips, a crash is a finding."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from operator import itemgetter
from typing import Any

from specfix.checker.finding import SEVERITIES, Finding
from specfix.checker.report import Report, Reported, Skipped
from specfix.checker.rule import Predicate, Rule
from specfix.deployment import Deployment, Location
from specfix.engines import Engine
from specfix.errors import CannotCheck, MissingFact, NotApplicable
from specfix.record import record

Provider = Callable[..., Any]
CRASHED = "INT001"  # the rule engine's own code
ABSENT = (MissingFact, NotApplicable)


class Default:
    """What a function takes for a fact that is not to be had: any value, known by itself and not by what it equals."""

    def __init__(self, value: Any) -> None:
        self.value = value


NONE = Default(None)


class Facts(dict[Any, Any]):
    """Facts by name, as pytest's fixtures: given ones, and derived ones computed from them on first use. Asking for one
    that is not to be had raises the MissingFact or NotApplicable that says why; asking for (name, Default) does not."""

    def __init__(self, given: Mapping[str, Any], providers: Mapping[str, Provider]) -> None:
        self._providers = providers
        # the kind of exception and its words: the exception itself would keep all that was at hand
        self._absent: dict[str, tuple[type[Exception], tuple[Any, ...]]] = {}
        for name, value in given.items():
            if isinstance(value, ABSENT):
                self._absent[name] = type(value), value.args
            else:
                self[name] = value

    def __missing__(self, asked: str | tuple[str, Default]) -> Any:
        if isinstance(asked, tuple):
            name, default = asked
            try:
                value = self[name]
            except ABSENT:
                value = default.value
        elif asked in self._absent:
            kind, words = self._absent[asked]
            raise kind(*words)
        else:
            provider = self._providers[asked]
            try:
                value = provider(*taking(provider)(self))
            except ABSENT as absent:
                self._absent[asked] = type(absent), absent.args
                raise
        self[asked] = value
        return value


@cache
def taking(function: Callable[..., Any]) -> Callable[[Facts], tuple[Any, ...]]:
    """What takes the facts that a plain function's parameters name. A parameter with a default is left to it where the
    fact is not to be had: the function can do without. Cheaper than inspect.signature."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = [NONE if value is None else Default(value) for value in function.__defaults__ or ()]
    first = len(names) - len(defaults)
    asked = (*names[:first], *zip(names[first:], defaults, strict=True))
    return itemgetter(*asked) if len(asked) > 1 else lambda facts: tuple([facts[each] for each in asked])


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
    def calls(self) -> tuple[tuple[Rule, Predicate, Callable[[Facts], tuple[Any, ...]], tuple[str, ...]], ...]:
        """Each rule in this order, its predicate, what takes the facts for that, and what it requires."""
        return tuple([(rule, rule.predicate, taking(rule.predicate), rule.requires) for rule in self.ordered])

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

    def report(rule: Rule, found: Reported) -> None:
        if asked.shows(rule.code, found):
            shown.append(found)
        if found.severity == "error":
            failed.add(rule.code)

    for rule, predicate, take, requires in asked.calls:
        if requires and failed and not failed.isdisjoint(requires):
            continue
        try:
            for finding in predicate(*take(facts)):
                if not mended(finding, deployment):
                    report(rule, reported(rule, finding))
        except NotApplicable:
            pass
        except MissingFact as missing:
            skipped.append(Skipped(rule.code, str(missing)))
        except CannotCheck:  # what all rules rest on is damaged
            raise
        except Exception as crash:  # a rule's bug must not hide what the others found
            report(rule, crashed(rule, crash))
            skipped.append(Skipped(rule.code, "the rule failed (INT001)"))
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
