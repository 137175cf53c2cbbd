"""What a rule says: a finding and how it could be repaired."""

from __future__ import annotations

from typing import Literal

from specfix.deployment import Location
from specfix.record import record

Severity = Literal["error", "warning", "note"]
Phase = Literal["config", "load", "warmup", "runtime", "silent"]
Confidence = Literal["certain", "likely"]
Safety = Literal["safe", "unsafe", "manual"]
Surface = Literal["draft_config", "target_config", "engine_args", "speculative_config", "env", "shim"]
Change = tuple[Surface, str, object]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")  # worst first


@record(frozen=True)
class Repair:
    """How a finding can be mended. ``safety``: safe cannot make anything worse; unsafe changes numerics or
    needs a run to confirm; manual is told, not done, and has no changes.

    ``changes`` is what `specfix fix` does, each (surface, name, value). The name is a JSON pointer in the configs, a
    flag without dashes in engine_args, a key in speculative_config, a variable in env, a patch in shim (its value holds
    the patch's settings). In the flags and variables, None takes the name away.
    ``by_shim`` is the same done by the shim alone, for a draft that has to be served from where it is.
    """

    safety: Safety
    summary: str
    surfaces: tuple[Surface, ...] = ()
    changes: tuple[Change, ...] = ()
    by_shim: tuple[Change, ...] = ()


@record(frozen=True)
class Finding:
    """One problem, in plain words with both values.

    ``phase`` is the moment at which the user would meet it: config and load (the server refuses to start), warmup
    (it dies before it is ready), runtime (it dies or answers with errors while it serves), silent (it serves, and
    the output is wrong or nothing is accepted). ``severity`` overrides the rule's own where it is given.
    """

    message: str
    location: Location
    phase: Phase
    confidence: Confidence = "certain"
    related: tuple[Location, ...] = ()
    repair: Repair | None = None
    severity: Severity | None = None
