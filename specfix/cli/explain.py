"""``specfix explain``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from specfix.cli.outcome import Outcome
from specfix.errors import CannotCheck

LONGEST_TITLE = 200


def explain(
    code: Annotated[str, typer.Argument(metavar="CODE", help="A rule's code (POS001) or name (draft-position-table).")],
) -> Outcome:
    """Print the page of a rule: what it finds, why it matters, examples, repair, evidence."""
    from specfix.report.page import render
    from specfix.report.terminal import Terminal

    page = titled(code)
    if page is None:
        found = pages()
        page = found.get(code.upper()) or found.get(code.lower())
        if page is None:
            raise CannotCheck(unknown(code, list(found)))
    try:
        text = page.read_text("utf-8")
    except OSError:
        raise CannotCheck(f"{code} has no page at {page}") from None
    return Outcome(render(text, Terminal.of(sys.stdout)))


def titled(code: str) -> Path | None:
    """The page that has ``code``, or the name, in its title, found without importing all rules. None where none has:
    a page need not be titled so."""
    from specfix.checker.registry import rule_packages

    for package in rule_packages():
        for folder in getattr(package, "__path__", ()):
            for page in Path(folder).rglob("*.md"):
                with page.open(encoding="utf-8", errors="replace") as file:
                    words = file.readline(LONGEST_TITLE).split()
                if words[:1] == ["#"] and {code.upper(), code.lower()} & {*words[1:3]}:
                    return page
    return None


def pages() -> dict[str, Path]:
    """Every page, by code and by name; the rule engine's own finding has one as well."""
    from specfix.checker import run
    from specfix.checker.registry import load_rules

    own = Path(run.__file__).with_name("rule_crashed.md")
    found = {"INT001": own, "rule-crashed": own}
    for rule in load_rules():
        found |= {rule.code: rule.page, rule.name: rule.page}
    return found


def unknown(code: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(code.upper(), known) or get_close_matches(code.lower(), known)
    hint = f"did you mean {' or '.join(near)}?" if near else "`specfix rules` lists them"
    return f"no rule {code!r}; {hint}"
