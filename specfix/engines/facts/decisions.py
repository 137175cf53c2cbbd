"""Decisions lifted from a function of the engine: conditions, and steps in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

from specfix.engines.compiled import UNKNOWN, Condition, Decide, compiled, names, parts
from specfix.record import record


class Guarded:
    """What a release does where the condition ``when`` holds."""

    when: Condition

    def holds(self, values: Mapping[str, object], missing: set[str] | None = None) -> bool | None:
        """Whether ``when`` holds for ``values``; None where that hangs on something unknown, added to ``missing``. See
        ``conditions.evaluate``."""
        return self._decide(values, missing, UNKNOWN)

    @cached_property
    def _decide(self) -> Decide:
        return compiled(self.when)

    @cached_property
    def parts(self) -> tuple[Condition, ...]:
        """``when`` and every condition within it."""
        return tuple(parts(self.when))

    @cached_property
    def names(self) -> frozenset[str]:
        """The values that ``when`` speaks of."""
        return names(self.when)

    @cached_property
    def blocks(self) -> frozenset[str]:
        """The configs that these are of: of ``speculative_config.method``, ``speculative_config``."""
        return frozenset(name.partition(".")[0] for name in self.names)


@record(frozen=True)
class Step(Guarded):
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
