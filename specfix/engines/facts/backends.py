"""Attention backends, and what a platform takes where nobody chooses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Backend:
    """One attention backend, by what its class answers.

    ``path``: its class. ``dtypes``: model dtypes it takes (float16, bfloat16 …); ``kv_cache_dtypes``: values of
    --kv-cache-dtype. ``head_sizes``: None where it names none and takes any. ``mla``: it is for multi-head latent
    attention alone; ``non_causal``: it takes the non-causal attention of a parallel drafter; ``sliding_window`` and
    ``sinks``: whether it takes layers with these. An entry that could not be read is None and listed under
    ``backends.backends.<NAME>.<field>`` in ``Engine.unknown``.
    """

    path: str
    dtypes: tuple[str, ...] | None = None
    kv_cache_dtypes: tuple[str, ...] | None = None
    head_sizes: tuple[int, ...] | None = None
    mla: bool | None = None
    non_causal: bool | None = None
    sinks: bool | None = None


@dataclass(frozen=True, slots=True)
class BackendFacts:
    """``backends``: by the name that --attention-backend takes (FLASH_ATTN). Block sizes are in ``blocks``."""

    backends: dict[str, Backend] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlatformFacts:
    """What a release takes on each platform ("cuda", "rocm", "cpu") where the user says nothing.

    ``defaults``: platform to engine argument to value.
    """

    defaults: dict[str, dict[str, Any]] = field(default_factory=dict)
