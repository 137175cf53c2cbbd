"""``specfix engine``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from specfix.cli.outcome import Outcome


def engine(
    versions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[VERSION]...", help="0.26.0, vllm==0.26.0, or a folder or interpreter."),
    ] = None,
) -> Outcome:
    """Say what is known of a release; without one, which releases are known and which one is installed."""
    from specfix.engines.find import find_engine, installed_version, shipped_versions
    from specfix.report import listing
    from specfix.report.terminal import Terminal

    if not versions:
        return Outcome(listing.engines_text(shipped_versions(), installed_version()))
    terminal = Terminal.of(sys.stdout)
    return Outcome("\n".join(listing.engine_text(find_engine(version), terminal) for version in versions))
