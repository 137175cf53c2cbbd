"""The rule engine: injection, skipping, requirements, crashes, order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from specfix.checker import Finding, Location, Rule, rule
from specfix.checker.report import Report
from specfix.checker.run import Chosen, Facts, check_codes, chosen, run, taking
from specfix.errors import CannotCheck, MissingFact, NotApplicable


class Given:
    """A deployment with one fact, which is all that the rule engine sees of one."""

    def facts(self) -> dict[str, Any]:
        return {"length": 7, "missing": MissingFact("a length"), "absent": NotApplicable("no draft")}


def finding(pointer: str = "/a") -> Finding:
    return Finding("a message", Location("config.json", pointer), "config")


@rule("TST001", "finds", severity="error", evidence=["a/b#1"])
def finds(length: int) -> Iterator[Finding]:
    """Finds."""
    if length == 7:
        yield finding("/b")
        yield finding("/a")


@rule("TST002", "needs-missing", severity="error", evidence=["a/b#1"])
def needs_missing(missing: int) -> Iterator[Finding]:
    """Cannot be decided."""
    yield finding()


@rule("TST003", "after-finds", severity="warning", evidence=["a/b#1"], requires=["TST001"])
def after_finds(length: int) -> Iterator[Finding]:
    """Another view of one cause."""
    yield finding()


@rule("TST004", "crashes", severity="error", evidence=["a/b#1"])
def crashes(length: int) -> Iterator[Finding]:
    """Has a bug."""
    yield finding("/before")
    raise ZeroDivisionError("a bug")


@rule("TST005", "not-applicable", severity="error", evidence=["a/b#1"])
def not_applicable(absent: int) -> Iterator[Finding]:
    """Speaks of a draft."""
    yield finding()


@rule("TST006", "own-severity", severity="error", evidence=["a/b#1"])
def own_severity(doubled: int) -> Iterator[Finding]:
    """Uses a derived fact."""
    yield Finding(f"{doubled}", Location("config.json"), "config", severity="note")


ALL: list[Rule] = [finds, needs_missing, after_finds, crashes, not_applicable, own_severity]


def check(*rules: Rule, select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> Report:
    given: Any = Given()
    engine: Any = "engine"
    return run(given, engine, Chosen(rules, select, ignore), {"doubled": lambda length: 2 * length})


def codes(rules: list[Rule], **options: tuple[str, ...]) -> list[str]:
    report = check(*rules, **options)
    return [found.code for found in report.findings] + [f"skipped {skip.code}" for skip in report.skipped]


def test_errors_come_first_then_code_then_place() -> None:
    report = check(own_severity, finds)
    assert [(f.code, f.severity, f.finding.location.pointer) for f in report.findings] == [
        ("TST001", "error", "/a"),
        ("TST001", "error", "/b"),
        ("TST006", "note", ""),
    ]
    assert report.findings[-1].finding.message == "14"
    assert report.verdict == "fail"


def test_missing_fact_skips_and_names_it() -> None:
    report = check(needs_missing)
    assert [(skip.code, skip.reason) for skip in report.skipped] == [("TST002", "a length")]
    assert report.verdict == "unknown"


def test_required_rule_with_an_error_silences() -> None:
    assert codes([after_finds, finds]) == ["TST001", "TST001"]
    assert codes([after_finds]) == ["TST003"]
    assert codes([after_finds, finds], select=("TST003",)) == []


def test_crash_becomes_a_finding_and_the_others_run() -> None:
    report = check(crashes, finds)
    assert [found.code for found in report.findings] == ["TST001", "TST001", "TST004", "INT001"]
    assert (
        "TST004" in report.findings[-1].finding.message
        and "ZeroDivisionError: a bug" in report.findings[-1].finding.message
    )


def test_not_applicable_is_silent() -> None:
    report = check(not_applicable)
    assert report.verdict == "pass" and not report.skipped


def test_select_and_ignore_by_prefix() -> None:
    assert codes(
        ALL,
        select=("TST00",),
        ignore=(
            "TST001",
            "TST004",
        ),
    ) == ["TST006", "skipped TST002"]
    assert chosen("POS001", ("POS",), ()) and not chosen("POS001", ("AUX",), ()) and not chosen("POS001", (), ("P",))


def test_a_crash_is_chosen_by_its_own_code_too() -> None:
    assert codes(ALL, select=("INT",)) == ["INT001"]
    assert "INT001" in codes(ALL, select=("TST004",))
    assert "INT001" in codes(ALL)
    for options in ({"ignore": ("INT001",)}, {"ignore": ("TST004",)}, {"select": ("TST001",)}):
        assert "INT001" not in codes(ALL, **options)
    assert codes(ALL, select=("INT",), ignore=("TST004",)) == []


def test_unknown_code_is_refused() -> None:
    check_codes(["TST", "INT", "INT001"], ALL)
    with pytest.raises(CannotCheck, match="'XYZ'"):
        check_codes(["XYZ"], ALL)


def test_a_fact_is_computed_once() -> None:
    calls: list[int] = []

    def once() -> int:
        calls.append(1)
        return 3

    def asking(once: int) -> None: ...

    facts = Facts({}, {"once": once})
    assert (taking(asking)(facts), taking(asking)(facts), len(calls)) == ((3,), (3,), 1)


def test_a_fact_that_is_not_to_be_had_is_asked_for_once_and_may_have_a_default() -> None:
    calls: list[int] = []

    def never(missing: int) -> int:
        raise AssertionError(missing)

    def failing() -> int:
        calls.append(1)
        raise MissingFact("a number", "and another")

    def asking(length: int, never: int | None = None, failing: int = 1, absent: Any = ["any", "value"]) -> None: ...  # noqa: B006

    def asking_too(failing: bool = True) -> None: ...

    facts = Facts(Given().facts(), {"never": never, "failing": failing})
    assert taking(asking)(facts) == taking(asking)(facts) == (7, None, 1, ["any", "value"])
    assert taking(asking_too)(facts)[0] is True
    assert type(taking(asking)(facts)[2]) is int
    for name, kind, words in (("failing", MissingFact, ("a number", "and another")), ("absent", NotApplicable, None)):
        for _ in range(2):
            with pytest.raises(kind) as caught:
                facts[name]
            assert caught.value.args == (words or ("no draft",))
    assert len(calls) == 1


def test_a_rule_is_checked_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="POS1"):
        rule("POS1", "x", severity="error", evidence=[])
    with pytest.raises(ValueError, match="fatal"):
        rule("POS001", "x", severity="fatal", evidence=[])  # type: ignore[arg-type]
