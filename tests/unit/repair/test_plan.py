"""Which findings are mended, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specfix.checker import Finding, Repair, Rule, rule
from specfix.checker.report import Report
from specfix.checker.run import Chosen, run
from specfix.deployment import Deployment, Draft, Serving
from specfix.deployment.load import load_deployment
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck
from specfix.facts import PROVIDERS
from specfix.repair.apply import apply
from specfix.repair.plan import Changes, Plan, make_plan

from .pairs import write_pair


def wants(
    code: str, key: str, value: Any, safety: Any = "safe", *, requires: tuple[str, ...] = (), changes: Any = None
) -> Rule:
    """A rule that finds fault with the draft's ``key`` until it is ``value``."""

    def predicate(draft: Draft) -> Iterator[Finding]:
        if draft.config.values.get(key) != value:
            made: Any = (("draft_config", f"/{key}", value),) if changes is None else changes
            repair = Repair(safety, f"set {key}", (), () if safety == "manual" else made) if safety else None
            yield Finding(f"{key} is not {value}", draft.at(key), "load", repair=repair)

    return rule(code, code.lower(), severity="error", evidence=["a/b#1"], requires=requires)(predicate)


def plan(tmp_path: Path, *rules: Rule, unsafe: bool = False, serving: Serving | None = None) -> Plan:
    target, draft = write_pair(tmp_path)
    before = load_deployment(str(target), str(draft), serving or Serving(method="eagle3"), "cpu")
    engine = find_engine("0.26.0")

    def check(deployment: Deployment) -> Report:
        return run(deployment, engine, Chosen(rules), PROVIDERS)

    def recheck(changes: Changes) -> Report:
        return check(apply(before, changes))

    return make_plan(check(before), recheck, unsafe=unsafe)


def left(made: Plan) -> dict[str, str]:
    return {found.reported.code: found.reason for found in made.left}


def test_safe_is_done_unsafe_and_manual_are_left(tmp_path: Path) -> None:
    rules = (
        wants("AAA001", "a", 1),
        wants("AAA002", "b", 1, "unsafe"),
        wants("AAA003", "c", 1, "manual"),
        wants("AAA004", "d", 1, None),
        wants("AAA005", "e", 1, changes=()),
    )
    made = plan(tmp_path / "1", *rules)
    assert [found.code for found in made.done] == ["AAA001"]
    assert left(made) == {
        "AAA002": "unsafe, done with --unsafe only: set b",
        "AAA003": "for you to decide: set c",
        "AAA004": "no repair is known",
        "AAA005": "for you to decide: set e",
    }
    bold = plan(tmp_path / "2", *rules, unsafe=True)
    assert [found.code for found in bold.done] == ["AAA001", "AAA002"]
    assert [change.value for change in bold.changes.values()] == [1, 1]


def test_two_that_want_the_same_are_one_change_and_two_that_do_not_are_told(tmp_path: Path) -> None:
    made = plan(tmp_path, wants("AAA001", "a", 1), wants("AAA002", "a", 1), wants("AAA003", "a", 2))
    assert [found.code for found in made.done] == ["AAA001", "AAA002"]
    assert left(made) == {"AAA003": "its repair sets /a to 2, and that of AAA001 sets it to 1"}
    assert len(made.changes) == 1


def test_a_rule_that_waited_for_another_has_its_turn(tmp_path: Path) -> None:
    made = plan(tmp_path, wants("AAA001", "a", 1), wants("AAA002", "b", 1, requires=("AAA001",)))
    assert [found.code for found in made.done] == ["AAA001", "AAA002"]
    assert made.left == ()


def test_what_goes_with_anothers_repair_is_done_too(tmp_path: Path) -> None:
    made = plan(tmp_path, wants("AAA001", "a", 1, "manual"), wants("AAA002", "a", 1))
    assert [found.code for found in made.done] == ["AAA001", "AAA002"]


def test_a_repair_that_does_not_mend_is_a_bug_and_no_result(tmp_path: Path) -> None:
    with pytest.raises(CannotCheck, match="the repair of AAA001 does not mend it"):
        plan(tmp_path, wants("AAA001", "a", 1, changes=(("draft_config", "/b", 1),)))


def test_options_and_variables(tmp_path: Path) -> None:
    @rule("AAA001", "options", severity="error", evidence=["a/b#1"])
    def options(serving: Serving) -> Iterator[Finding]:
        """Wants other options."""
        wanted = Serving(
            method="eagle3",
            block_size=64,
            num_speculative_tokens=3,
            env={"KEEP": "1", "SET": "2"},
            flags={"some_other_flag": 1},
        )
        if serving != wanted:
            changes: Any = (
                ("engine_args", "block-size", 64),
                ("engine_args", "max-model-len", None),
                ("engine_args", "some-other-flag", 1),
                ("speculative_config", "num_speculative_tokens", 3),
                ("env", "GONE", None),
                ("env", "SET", 2),
            )
            yield Finding("", serving.at("block_size"), "load", repair=Repair("safe", "", (), changes))

    given = Serving(method="eagle3", max_model_len=9, env={"KEEP": "1", "GONE": ""})
    assert plan(tmp_path, options, serving=given).left == ()


def test_the_shim_mends_what_it_patches_and_is_let_in(tmp_path: Path) -> None:
    @rule("AAA001", "shim", severity="error", evidence=["a/b#1"])
    def shim(serving: Serving) -> Iterator[Finding]:
        """Is found whatever the deployment."""
        repair = Repair("safe", "a shim", ("shim",), (("shim", "some_patch", {}),))
        yield Finding("", serving.at("method"), "load", repair=repair)

    for plugins, let_in in (("", "specfix_shim"), ("a", "a,specfix_shim"), ("specfix_shim,b", "specfix_shim,b")):
        made = plan(tmp_path / let_in, shim, serving=Serving(method="eagle3", env={"VLLM_PLUGINS": plugins}))
        after = made.after.deployment
        assert (made.left, after.serving.env) == ((), {"VLLM_PLUGINS": let_in})
        assert after.patches == {"some_patch": {}}
