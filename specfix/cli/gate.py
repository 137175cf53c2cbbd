"""``specfix gate``."""

from __future__ import annotations

from typing import Annotated

import typer

from specfix.cli import options
from specfix.cli.outcome import Outcome


def gate(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Launch files, or folders of them.")],
    *,
    engine: options.Engines = None,
    hardware: options.Hardware = None,
    form: options.Form = options.Format.text,
    select: options.Select = None,
    ignore: options.Ignore = None,
    baseline: options.Baseline = None,
    write_baseline: options.WriteBaseline = None,
    fail_on: options.FailsOnOrSettings = None,
    strict: options.StrictOrSettings = None,
) -> Outcome:
    """Check every launch in these files, as before a merge. Files that start no vLLM server, or one without
    speculation, are passed over.

    Exit status: as of check.
    """
    from pathlib import Path

    from specfix.cli.access import is_folder
    from specfix.cli.conclusion import Gate, chosen
    from specfix.cli.launches import check_all
    from specfix.cli.servers import all_launches
    from specfix.gate.settings import find_settings

    settings = find_settings()
    found = list(all_launches(files, named=False))
    where = {
        "default_engine": settings.engine,
        "hardware": hardware or settings.hardware,
        "select": chosen(settings, select),
        "ignore": ignore or (),
    }
    by_release, remarks = check_all(found, engine or [None], **where)
    everything = any(is_folder(Path(name)) for name in files) and not (select or ignore or remarks)
    gate = Gate.of(settings, fail_on, strict, baseline)
    return gate.outcome(by_release, form.value, write_baseline, remarks, several=True, everything=everything)
