"""CFG007: the launch command has an argument that this release drops without a word."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine


@rule(
    "CFG007",
    "argument-ignored",
    severity="warning",
    evidence=["vllm/utils/argparse_utils.py: FlexibleArgumentParser", "vllm/envs.py: environment_variables"],
)
def argument_ignored(serving: Serving, engine: Engine) -> Iterator[Finding]:
    """An argument or variable of the launch changes nothing in this release."""
    for misfit in serving.misfits:
        if misfit.ignored:
            what = misfit.repair or (
                f"what {engine} heeds: {misfit.nearest}"
                if misfit.nearest
                else "take it out: it misleads whoever reads it"
            )
            message = f"{misfit.message}: it changes nothing."
            yield Finding(message, misfit.location, "silent", repair=Repair("manual", what))
