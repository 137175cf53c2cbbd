"""CFG006: the launch command has an argument that this release refuses."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine


@rule(
    "CFG006",
    "argument-refused",
    severity="error",
    evidence=["vllm/utils/argparse_utils.py: FlexibleArgumentParser", "vllm/engine/arg_utils.py: add_cli_args"],
)
def argument_refused(serving: Serving, engine: Engine) -> Iterator[Finding]:
    """An argument of the launch command is not one that the release takes."""
    for misfit in serving.misfits:
        if not misfit.ignored:
            what = misfit.repair or (
                f"the nearest that {engine} takes: {misfit.nearest}" if misfit.nearest else "take it out of the command"
            )
            message = f"{misfit.message}. {misfit.then or 'The server does not start.'}"
            yield Finding(message, misfit.location, "config", repair=Repair("manual", what))
