"""``specfix engine``."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Annotated

import typer

from specfix.cli.outcome import Outcome


class Format(str, Enum):
    text = "text"
    json = "json"


def engine(
    versions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VERSION]...", help="0.26.0, vllm==0.26.0, an image, or a folder, wheel or interpreter."
        ),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Form of the answer.")] = Format.text,
    everything: Annotated[bool, typer.Option("--all", help="Shorten no list.")] = False,
) -> Outcome:
    """Say what is known of a release; of two, what differs for speculative decoding; of none, which are known."""
    from specfix.engines.find import find_engine, installed_version, shipped_versions
    from specfix.report import engine as report
    from specfix.report import engine_diff
    from specfix.report.terminal import Terminal

    terminal, text = Terminal.of(sys.stdout), form is Format.text
    engines = [find_engine(version) for version in versions or shipped_versions()]
    if not versions:
        installed = installed_version()
        return Outcome(report.list_text(engines, installed, terminal) if text else report.list_json(engines, installed))
    if len(engines) == 1:
        (one,) = engines
        return Outcome(report.engine_text(one, terminal, everything=everything) if text else report.engine_json(one))
    if text:
        return Outcome(engine_diff.diff_text(engines, terminal, everything=everything))
    return Outcome(engine_diff.diff_json(engines))
