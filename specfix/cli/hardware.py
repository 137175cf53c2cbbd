"""``specfix hardware``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from specfix.cli.outcome import Outcome


def hardware(
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep it in FILE, for `specfix check --hardware FILE`."),
    ] = None,
) -> Outcome:
    """Print what this machine is, as far as rules ask for it."""
    from specfix.deployment.machines import save as save_hardware
    from specfix.deployment.probe import probe
    from specfix.report.listing import hardware_text
    from specfix.report.terminal import Terminal

    found = probe(ask_triton=True)
    if save is not None:
        save_hardware(found, save)
    return Outcome(hardware_text(found, Terminal.of(sys.stdout)))
