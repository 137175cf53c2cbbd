"""Decisions lifted from a function of the engine: conditions, and steps in order."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from specfix.record import record

# A condition lifted from the engine's source: nested lists in prefix form, with the source's own dotted names, such as
#   ["and", ["==", ["name", "speculative_config.method"], ["const", "eagle3"]], ["name", "parallel_config.enable_dbo"]]
# The whole grammar is in specfix.engines.conditions.
Condition = list[Any]


@record(frozen=True)
class Step:
    """One way out of a function: where ``when`` holds and no earlier step did, the outcome is ``then``.

    ``line`` is the line in the source file, for those who want to look."""

    when: Condition
    then: Any
    line: int


@record(frozen=True)
class RunnerFacts:
    """Which model runner is chosen: the steps of ``VllmConfig.use_v2_model_runner``, in order.

    ``then`` of a step is "V1", "V2" or "refused" (the step raises). ``unsupported`` holds what the V2 runner does not
    support (``then`` is the engine's own name of the feature): any of them means "V1" where a step asks for the name
    ``unsupported``, and a refusal at start where V2 was forced and ``forced_is_validated``; ``v1_unsupported`` is the
    same of the V1 runner, which refuses in all cases. ``v2_needs_triton``: V2 without Triton is refused.
    ``cpu`` overrides the choice on a CPU ("V1" where the CPU worker has no V2 runner). A release without a V2 runner
    has one step: always "V1". ``defaults``: values that the names in the conditions have when nobody sets them, as the
    config classes state them. See ``specfix.engines.runner.choose_runner``.
    """

    steps: tuple[Step, ...]
    unsupported: tuple[Step, ...]
    forced_is_validated: bool | None
    cpu: Literal["V1", "as chosen"] | None
    v1_unsupported: tuple[Step, ...] = ()
    v2_needs_triton: bool | None = None
    defaults: dict[str, Any] = field(default_factory=dict)
