"""``specfix rules``."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Annotated

import typer

from specfix.cli.outcome import Outcome


class Format(str, Enum):
    text = "text"
    json = "json"


def rules(
    form: Annotated[Format, typer.Option("--format", help="Form of the list.")] = Format.text,
) -> Outcome:
    """List the rules: code, name, severity, summary."""
    from specfix.checker.registry import load_rules
    from specfix.report import listing
    from specfix.report.terminal import Terminal

    found = load_rules()
    if form is Format.json:
        return Outcome(listing.rules_json(found))
    return Outcome(listing.rules_text(found, Terminal.of(sys.stdout)))
