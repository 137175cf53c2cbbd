"""Every example of every rule page, and what each page must hold."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import pytest

from specfix.checker.registry import load_rules
from specfix.testing import Case, cases, run_case

ROOT = Path(__file__).parent.parent
BASES = (ROOT / "examples", ROOT / "tests" / "bases")
HEADINGS = ["## What it finds", "## Why it matters", "## Examples", "## Repair", "## Evidence"]
RULES = [rule for rule in load_rules() if rule.predicate.__module__.startswith("specfix_rules.")]
ALWAYS = {
    "serving",
    "engine",
    "deployment",
}  # facts that are never missing: a rule that needs no other cannot be skipped
CASES = [case for rule in RULES for case in cases(rule.page)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.page.stem}:{case.line}")
def test_example(case: Case, tmp_path: Path) -> None:
    assert run_case(case, RULES, BASES, tmp_path) == case.expected


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_page_shows_firing_quiet_and_skipped(rule: object, tmp_path: Path) -> None:
    page = rule.page  # type: ignore[attr-defined]
    text = page.read_text("utf-8")
    assert text.startswith(f"# {rule.code} {rule.name}\n")  # type: ignore[attr-defined]
    assert [line for line in text.splitlines() if line.startswith("## ")] == HEADINGS
    expected = [case.expected for case in cases(page)]
    assert any(said and not said[0].startswith("skipped") for said in expected), "no firing example"
    assert () in expected, "no quiet example"
    parameters = signature(rule.predicate).parameters  # type: ignore[attr-defined]
    if not {name for name, one in parameters.items() if one.default is one.empty} <= ALWAYS:
        assert any(said and said[0].startswith("skipped") for said in expected), "no skipped example"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_some_quiet_example_is_close_to_a_firing_one(rule: object) -> None:
    all_cases = cases(rule.page)  # type: ignore[attr-defined]
    firing = [case for case in all_cases if case.expected and not case.expected[0].startswith("skipped")]
    quiet = [case for case in all_cases if not case.expected]
    assert min(differences(a.given, b.given) for a in firing for b in quiet) <= 2


def differences(a: object, b: object) -> int:
    """How many leaves of two nested mappings differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        return sum(differences(a.get(key), b.get(key)) for key in a.keys() | b.keys())
    return 0 if a == b else 1
