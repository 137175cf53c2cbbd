"""CFG008: a flag has a value that is none of those that the release takes."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import known


@rule("CFG008", "value-not-a-choice", severity="error", evidence=["vllm/engine/arg_utils.py: add_cli_args"])
def value_not_a_choice(serving: Serving, engine: Engine) -> Iterator[Finding]:
    """A flag that takes one of a few words is given another."""
    flags = known(engine.serve.flags, f"the flags of {engine}")
    for name, value in serving.flags.items():
        flag = flags.get(name.replace("_", "-"))
        if flag is None or flag.choices is None or flag.kind != "str" or flag.folds or flag.nargs or flag.appends:
            continue
        if not isinstance(value, str) or value in flag.choices or value in flag.words:
            continue
        if flag.none and value in {"", "None"}:
            continue
        yield Finding(
            f"--{name.replace('_', '-')} is {show(value)}, and {engine} takes "
            f"{', '.join(str(choice) for choice in flag.choices if choice is not None)}: it does not start.",
            serving.at(name),
            "config",
            repair=Repair("manual", "take one of those", ("engine_args",)),
        )
