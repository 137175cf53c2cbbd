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
    "repair": {"repair", "report", "checker", "launch", "deployment", "engines", "shim"},
    "shim": {"shim"},
    "launch": {"launch", "deployment", "engines"},
    "gate": {"gate", "report", "checker", "deployment"},
}
EVERYWHERE = {"errors", "interrupts", "record", "whole"}
RELEASE = re.compile(r"\b0\.\d{1,2}(\.\d+)?\b")
SOURCES = sorted((ROOT / "rules").rglob("*.py"))
FACTS = sorted((ROOT / "specfix" / "facts").rglob("*.py"))


def imported(text: str, package: str) -> set[str]:
    """Modules that a file of ``package`` imports, anywhere in it, and the names that it takes from packages."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def imports_of(file: Path) -> set[str]:
    return imported(file.read_text("utf-8"), ".".join(file.parent.relative_to(ROOT).parts).removeprefix("rules."))


def releases(text: str) -> list[str]:
    """What in a source looks like the number of a release, or asks for one. Docstrings are prose and decide nothing."""
    tree = ast.parse(text)
    prose = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(value)) if id(node) not in prose and RELEASE.search(value):
                found.append(value)
            case ast.Constant(value=float(value)) if 0 < value < 1:
                found.append(str(value))
            case ast.Tuple(elts=[ast.Constant(value=0), ast.Constant(value=int(minor)), *_]) if minor > 5:
                found.append(f"(0, {minor})")
            case ast.Attribute(attr="version" | "__version__" | "version_tuple"):
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("package", LAYERS)
def test_imports_run_one_way(package: str) -> None:
    for file in sorted((ROOT / "specfix" / package).rglob("*.py")):
        for module in imports_of(file):
            parts = module.split(".")
            if parts[0] == "specfix" and len(parts) > 1:
                name = ROOT / "specfix" / parts[1]
                if name.is_dir() or (name.with_suffix(".py").is_file() and parts[1] not in EVERYWHERE):
                    assert parts[1] in LAYERS[package], f"{file.relative_to(ROOT)} imports {module}"
            assert parts[0] != "specfix_rules", f"{file.relative_to(ROOT)} names a rule"


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_a_rule_imports_only_its_vocabulary(file: Path) -> None:
    for module in imports_of(file):
        if module.startswith("specfix"):
            assert module.split(".")[1:2] != ["cli"] and not module.startswith(("specfix.report", "specfix_rules")), (
                module
            )


@pytest.mark.parametrize("file", [*SOURCES, *FACTS], ids=lambda file: f"{file.parent.name}.{file.stem}")
def test_no_release_stands_in_a_rule_or_a_fact(file: Path) -> None:
    """A release is judged by what its source holds, never by its number."""
    assert releases(file.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "x = 'since 0.26.0'",
        "x = f'{y} 0.26'",
        "x = 0.26",
        "x = y >= (0, 26)",
        "x = (0, 26, 1)",
        "x = engine.version",
        "from m import f; f(engine).version < '1'",
        "def f():\n    return '0.10'",
    ],
)
def test_a_release_is_seen(text: str) -> None:
    assert releases(text)


def test_what_is_no_release_is_not_seen() -> None:
    assert releases('"""Seen on 0.26.0."""\nx = (0, 1), 0, 26, [0, 26], 1.5, "10.26.0", "v2"\n') == []


def test_every_way_to_import_is_seen() -> None:
    assert "specfix.cli" in imported("from specfix import cli", "specfix.facts")
    assert "specfix.cli" in imported("def f():\n    from .. import cli", "specfix.facts")
    assert "specfix.cli.check" in imported("from ..cli.check import check", "specfix.facts")
    assert "specfix.facts.aux" in imported("from .aux import x", "specfix.facts")
    assert "specfix.facts.aux" in imported("from . import aux", "specfix.facts")
    assert "specfix.cli" in imported("import specfix.cli as x", "specfix.facts")


def test_every_rule_has_a_page_and_evidence_and_one_file() -> None:
    rules = [rule for rule in load_rules() if rule.predicate.__module__.startswith("specfix_rules.")]
    assert rules
    for rule in rules:
        assert rule.page.is_file() and rule.evidence and rule.summary, rule.code
    files = [rule.page for rule in rules]
    assert len(files) == len(set(files)), "one rule, one file"
