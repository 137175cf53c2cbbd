"""What holds for the whole house: which way imports run, what rules may not contain, what loads on the fast path."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from specfix.checker.registry import load_rules

ROOT = Path(__file__).parent.parent
# a package may import those named here, and what stands outside this list only itself
LAYERS: dict[str, set[str]] = {
    "deployment": {"deployment"},
    "engines": {"engines"},
    "facts": {"facts", "deployment", "engines"},
    "checker": {"checker", "deployment", "engines"},
    "report": {"report", "checker", "deployment", "engines"},
    "repair": {"repair", "report", "checker", "deployment", "engines", "shim"},
    "shim": {"shim"},
}
RELEASE = re.compile(r"\b0\.\d{1,2}(\.\d+)?\b")
SOURCES = sorted((ROOT / "rules").rglob("*.py"))


def imported(file: Path) -> set[str]:
    """Modules that ``file`` imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("package", LAYERS)
def test_imports_run_one_way(package: str) -> None:
    for file in sorted((ROOT / "specfix" / package).rglob("*.py")):
        for module in imported(file):
            parts = module.split(".")
            if parts[0] == "specfix" and len(parts) > 1 and (ROOT / "specfix" / parts[1]).is_dir():
                assert parts[1] in LAYERS[package], f"{file.relative_to(ROOT)} imports {module}"
            assert parts[0] != "specfix_rules", f"{file.relative_to(ROOT)} names a rule"


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_a_rule_imports_only_its_vocabulary(file: Path) -> None:
    for module in imported(file):
        if module.startswith("specfix"):
            assert module.split(".")[1:2] != ["cli"] and not module.startswith(("specfix.report", "specfix_rules")), (
                module
            )


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_no_release_stands_in_a_rule(file: Path) -> None:
    """A release is judged by what its source holds, never by its number."""
    strings = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Constant)]
    assert not [node.value for node in strings if isinstance(node.value, str) and RELEASE.search(node.value)]
    assert not [node.value for node in strings if isinstance(node.value, float) and 0 < node.value < 1]
    assert "version" not in {
        node.attr for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Attribute)
    }


def test_every_rule_has_a_page_and_evidence_and_one_file() -> None:
    rules = [rule for rule in load_rules() if rule.predicate.__module__.startswith("specfix_rules.")]
    assert rules
    for rule in rules:
        assert rule.page.is_file() and rule.evidence and rule.summary, rule.code
    files = [rule.page for rule in rules]
    assert len(files) == len(set(files)), "one rule, one file"
