"""The documentation that is written from the code: its tables are whole, and the generator says when they are stale."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from specfix.testing import Case

ROOT = Path(__file__).parent.parent


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


index = load("index")
RULES = index.own_rules()
FOUND = index.reported(RULES)


def test_every_report_asked_of_is_a_case_or_lacks_a_named_fact() -> None:
    asked, missing, named = index.asked(), index.undecided(), {one.ref for one in FOUND}
    assert len(asked) == len(set(asked)) == 145
    assert not named & missing.keys(), "both a case and undecided"
    assert missing.keys() <= set(asked), "not among those asked of"
    assert not set(asked) - named - missing.keys(), "neither a case nor undecided"
    assert all(fact.strip() for fact in missing.values())


def test_no_thread_is_a_case_twice_over_without_a_difference() -> None:
    seen = [(one.ref, one.rule.code, one.case.given) for one in FOUND]
    assert all(one not in seen[:place] for place, one in enumerate(seen))


def test_what_fires_what_is_quiet_and_what_is_skipped_are_counted_apart() -> None:
    def one(ref: str, *expected: str) -> object:
        return index.Reported(ref, RULES[0], Case(Path("page.md"), 1, {}, expected))

    found = [
        one("a/b#1", "POS001 error draft:/x"),
        one("a/b#1"),
        one("a/b#2"),
        one("a/b#3", "skipped POS001"),
        one("a/b#4", "POS001 error draft:/x"),  # not among those asked of
    ]
    said = index.reports_row(found, ["a/b#1", "a/b#2", "a/b#3", "a/b#5"])
    assert said.startswith(
        "1 of 4 are cases that fire, 1 more are no fault, and nothing is said, 1 more cannot be told"
    )


def test_the_rules_page_links_every_rule() -> None:
    page = index.rules_page(RULES)
    for rule in RULES:
        assert f"[{rule.code}](../{rule.page.relative_to(ROOT).as_posix()}) | {rule.name} |" in page


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert index.cell("a | ``b``") == "a \\| `b`"


def test_threads_of_the_engine_come_first_by_number() -> None:
    refs = ["a/b#2", "vllm-project/vllm#10", "vllm-project/vllm#9"]
    assert sorted(refs, key=index.thread_order) == ["vllm-project/vllm#9", "vllm-project/vllm#10", "a/b#2"]


def test_the_numbers_of_the_readme_are_between_marks() -> None:
    text = f"before\n{index.BEGIN}old\\1\n{index.END}after\n"
    assert index.readme(text, "new\\1\n") == f"before\n{index.BEGIN}new\\1\n{index.END}after\n"
    with pytest.raises(ValueError):
        index.readme("no marks", "new")


def test_what_is_stale_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stale = ROOT / "docs" / "rules.md"
    monkeypatch.setattr(index, "documents", lambda: {stale: "something else", ROOT / "LICENSE": license_text()})
    monkeypatch.setattr(index.sys, "argv", ["index.py", "--check"])
    assert index.main() == 1
    assert capsys.readouterr().err == "docs/rules.md is not what `python docs/index.py` writes\n"


def license_text() -> str:
    return (ROOT / "LICENSE").read_text("utf-8")


def test_every_link_between_documents_leads_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
