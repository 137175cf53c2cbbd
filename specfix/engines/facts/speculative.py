"""The speculative config: its keys, and what a release makes of drafts before it loads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from specfix.engines.facts.decisions import Condition


@dataclass(frozen=True, slots=True)
class Key:
    """One key of --speculative-config. ``type`` is its annotation as the source writes it; ``choices`` the values that
    it may have, None where any of its type; ``at_least`` and ``above``: bounds of a number."""

    type: str
    default: Any = None
    required: bool = False
    choices: tuple[Any, ...] | None = None
    at_least: float | None = None
    above: float | None = None


@dataclass(frozen=True, slots=True)
class SpeculativeFacts:
    """``keys``: what a user may set. ``internal``: fields that the engine fills in itself. ``refuses_others``: a key
    that is neither ends the start (else it is dropped without a word)."""

    keys: dict[str, Key] | None = None
    internal: tuple[str, ...] = ()
    refuses_others: bool | None = None


@dataclass(frozen=True, slots=True)
class Override:
    """One branch of ``SpeculativeConfig.hf_config_override``: where ``when`` holds of the draft's config, it gets this
    ``model_type`` and these ``architectures`` (None: left alone), and ``n_predict`` from the first of these keys."""

    when: Condition
    model_type: str | None = None
    architectures: tuple[str, ...] | None = None
    n_predict: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class MtpFacts:
    """Built-in drafts. ``model_types``: model types that mean the method mtp (``MTPModelTypes``)."""

    model_types: tuple[str, ...] | None = None
    overrides: tuple[Override, ...] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class SpeculatorsFacts:
    """What a release makes of a config in the speculators library's format.

    ``algorithms``: speculators_model_type to the architectures that it becomes."""

    algorithms: dict[str, tuple[str, ...] | None] | None = None
