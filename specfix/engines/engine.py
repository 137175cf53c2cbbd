"""One engine release and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specfix.engines.facts import (
    BlockFacts,
    CpuFacts,
    EagleFacts,
    LayerFacts,
    LengthFacts,
    MethodFacts,
    RopeFacts,
    RunnerFacts,
    ServeFacts,
    TraitFacts,
    TritonFacts,
)

SCHEMA = "specfix/engine-v1"


@dataclass(frozen=True, slots=True)
class Engine:
    """Facts of one release. ``source``: "shipped", "installed here", or the path that was read.

    ``unknown`` maps a fact (``lengths.v1_guard``) to the reason for which it could not be read.
    """

    name: str
    version: str
    source: str
    runner: RunnerFacts
    lengths: LengthFacts
    rope: RopeFacts
    eagle: EagleFacts
    cpu: CpuFacts
    triton: TritonFacts
    blocks: BlockFacts
    layers: LayerFacts
    methods: MethodFacts
    traits: TraitFacts
    unknown: Mapping[str, str] = field(default_factory=dict)
    serve: ServeFacts = field(default_factory=ServeFacts)

    def __str__(self) -> str:
        return f"{self.name} {self.version}"
