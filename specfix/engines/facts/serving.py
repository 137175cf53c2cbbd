"""What `vllm serve` takes: flags, YAML, environment variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ServeFacts:
    """What `vllm serve` takes.

    ``yaml_nested``: in a ``--config`` YAML a mapping may stand where a flag takes JSON (else only JSON text).
    ``yaml_false``: ``key: false`` there becomes ``--no-key`` (else it is dropped without a word). ``flags``: long flags
    of the engine's arguments, without dashes. ``backend_variable``: VLLM_ATTENTION_BACKEND is heeded.
    ``method_words``: (word, method): a draft whose path, parent folders included, holds the word gets that method,
    the first one that is in it, unless the method asked for is one of ``method_kept``.
    """

    yaml_nested: bool | None = None
    yaml_false: bool | None = None
    flags: tuple[str, ...] | None = None
    backend_variable: bool = False
    method_words: tuple[tuple[str, str], ...] | None = None
    method_kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VariableFacts:
    """``variables``: VLLM_* variable to its default as the source states it; one that could not be read is None and
    listed under ``variables.variables.<NAME>``."""

    variables: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequirementFacts:
    """Version ranges that the distribution requires, as PEP 440 specifiers (">=4.56.0,<5"), "" where it takes any;
    None where the distribution's metadata are not at hand."""

    python: str | None = None
    torch: str | None = None
    transformers: str | None = None
