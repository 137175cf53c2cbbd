"""Enlarge the draft's position table before anything is derived from it.

``max_position_embeddings`` is raised in the draft's config as soon as it is read, so that the rotary table, the length
from which drafting stops, and every later copy of the config follow. Only for rotary tables that this number merely
sizes; frequencies that depend on it would change.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

from .changes import Change, Plan, around, make
from .inspection import need
from .log import LEFT, Inert, guarded, say

PATCH = "draft_positions"
POSITIONS = "max_position_embeddings"
# yarn and deepseek size the table by another key; dynamic and longrope derive frequencies from this one
SIZED_BY_IT = {"default", "linear", "llama3", "ntk", "proportional", "mrope"}


def plan(module: Any, settings: dict[str, Any]) -> Plan:
    draft, positions = settings.get("draft"), settings.get(POSITIONS)
    if not (isinstance(draft, str) and draft and type(positions) is int and positions > 0):
        raise Inert(f"the manifest lacks the draft or its {POSITIONS}")
    model, speculative = need(module, "ModelConfig"), need(module, "SpeculativeConfig")
    fields = getattr(model, "__dataclass_fields__", {})
    if not {"model", "runner", "hf_overrides"} <= set(fields) or "__post_init__" not in vars(model):
        raise Inert("ModelConfig is not the dataclass with model, runner and hf_overrides that it was")
    if "compute_hash" not in vars(speculative):
        raise Inert("SpeculativeConfig has no compute_hash, so that a compiled draft could be taken from the cache")

    def post_init(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        overrides = None
        with guarded(PATCH, LEFT):
            if self.runner == "draft" and is_draft(self.model, draft):
                overrides = Overrides(self, positions)
        try:
            return original(self, *args, **kwargs)
        finally:
            if overrides is not None:
                with guarded(PATCH, "the draft's overrides are not what they were"):
                    overrides.take_back(self, draft)

    def compute_hash(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        """The released one may not tell two sizes of the table apart, which compiled code has built in."""
        released = original(self, *args, **kwargs)
        with guarded(PATCH, "the compile cache may hold a draft of another size"):
            config = getattr(self, "draft_model_config", None)
            if config is not None and isinstance(released, str) and is_draft(config.model, draft):
                size = f"{released} {config.hf_config.max_position_embeddings}"
                return hashlib.sha256(size.encode()).hexdigest()
        return released

    changes = [around(model, "__post_init__", post_init), around(speculative, "compute_hash", compute_hash)]
    return changes, ""  # the line comes with the draft itself; the server's other processes never see it


class Overrides:
    """Stands in the place of a draft's ``hf_overrides`` while its config is read: does what they do, then enlarges."""

    def __init__(self, model_config: Any, positions: int) -> None:
        self.released = model_config.hf_overrides
        self.positions = positions
        self.before: list[int] = []
        if self.released and not callable(self.released):
            raise Inert(f"the draft has overrides of its own, {self.released}")
        model_config.hf_overrides = self

    def __call__(self, config: Any) -> Any:
        if callable(self.released):
            config = self.released(config)
        with guarded(PATCH, LEFT):
            self.before += enlarge(config, self.positions)
        return config

    def take_back(self, model_config: Any, draft: str) -> None:
        model_config.hf_overrides = self.released
        if self.before:
            length = getattr(model_config, "max_model_len", None)
            raised = f"raised from {min(self.before)} to {self.positions}"
            say(PATCH, f"{POSITIONS} of {draft} {raised} (its length is {length})")


def is_draft(model: str, draft: str) -> bool:
    """The same text, the same folder, or a Hub id and its folder in the cache."""
    if model == draft or os.path.realpath(model) == os.path.realpath(draft):
        return True
    cached = "models--" + draft.replace("/", "--")
    return cached in str(model).replace(os.sep, "/").split("/")


def enlarge(config: Any, positions: int) -> list[int]:
    """Raise the number where it stands in the config or its text part; give the numbers that were there."""
    parts = [config]
    inner = config.get_text_config() if hasattr(config, "get_text_config") else config
    if inner is not config:
        parts.append(inner)
    # a draft that is wrapped once more keeps its own config here
    wrapped = getattr(config, "model", None)
    if hasattr(wrapped, POSITIONS):
        parts.append(wrapped)
    parts = [part for part in parts if isinstance(getattr(part, POSITIONS, None), int)]
    types = {kind for part in parts for kind in rope_types(part)}
    short = [part for part in parts if getattr(part, POSITIONS) < positions]
    if not short:
        return []
    if not types <= SIZED_BY_IT:
        say(PATCH, f"left as it was: {POSITIONS} does more than size a table of RoPE type {', '.join(sorted(types))}")
        return []
    before = [getattr(part, POSITIONS) for part in short]
    make([Change(part, POSITIONS, positions) for part in short])
    return before


def rope_types(config: Any) -> Iterator[str]:
    """Of ``rope_scaling`` and ``rope_parameters``, which may hold one dict a type of layer; "none" without RoPE."""
    found = [getattr(config, key, None) for key in ("rope_scaling", "rope_parameters")]
    if not any(found):
        yield "default" if getattr(config, "rope_theta", None) is not None else "none"
    for parameters in found:
        if isinstance(parameters, dict) and parameters:
            nested = [each for each in parameters.values() if isinstance(each, dict)]
            for each in nested or [parameters]:
                yield str(each.get("rope_type") or each.get("type") or "default")
