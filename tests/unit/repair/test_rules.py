"""Every repair of every rule, by the examples on their pages: it mends what it is for, or says why it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.checker.registry import load_rules
from specfix.checker.run import Chosen, run
from specfix.facts import PROVIDERS
from specfix.repair.apply import apply
from specfix.repair.plan import identity, make_plan
from specfix.testing import Case, cases, report_on

from .pairs import EXAMPLES, ROOT

BASES = (EXAMPLES, ROOT / "tests/bases")
RULES = [rule for rule in load_rules() if rule.predicate.__module__.startswith("specfix_rules.")]
FIRING = [
    case for rule in RULES for case in cases(rule.page) if case.expected and not case.expected[0].startswith("skipped")
]


@pytest.mark.parametrize("case", FIRING, ids=lambda case: f"{case.page.stem}:{case.line}")
def test_example(case: Case, tmp_path: Path) -> None:
    report = report_on(case, RULES, BASES, tmp_path)
    for found in report.findings:
        repair = found.finding.repair
        assert repair is not None, f"{found.code} says nothing of a repair"
        assert (repair.safety == "manual") == (not repair.changes), f"{found.code}: {repair.safety}"
        if repair.changes:
            assert {surface for surface, _, _ in repair.changes} == set(repair.surfaces), found.code
    before, asked = report.deployment, Chosen(RULES)
    plan = make_plan(report, lambda changes: run(apply(before, changes), report.engine, asked, PROVIDERS), unsafe=True)
    for left in plan.left:
        assert left.reason
        assert left.reported.finding.repair is not None and left.reported.finding.repair.safety == "manual"
    first, after = {identity(found) for found in report.findings}, {identity(left.reported) for left in plan.left}
    # a rule that waits for another one speaks when that one is content
    waited = {rule.code for rule in RULES if {done.code for done in plan.done} & set(rule.requires)}
    new = {left.reported.code for left in plan.left if identity(left.reported) not in first}
    assert new <= waited, "a repair made a new problem"
    assert {identity(done) for done in plan.done} >= first - after
