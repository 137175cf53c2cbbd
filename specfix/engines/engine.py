"""One engine release and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from specfix.engines.outcomes import Outcomes
from specfix.errors import CannotCheck
from specfix.record import record

if TYPE_CHECKING:
    from specfix.engines.facts.backends import BackendFacts, PlatformFacts
    from specfix.engines.facts.classes import ConfigClassFacts
    from specfix.engines.facts.decisions import RunnerFacts
    from specfix.engines.facts.drafting import EagleFacts, LayerFacts, LengthFacts, MethodFacts, RopeFacts, TraitFacts
    from specfix.engines.facts.hardware import BlockFacts, CpuFacts, TritonFacts
    from specfix.engines.facts.numbers import NumberFacts, ParallelFacts
    from specfix.engines.facts.quantisation import QuantisationFacts
    from specfix.engines.facts.serving import RequirementFacts, ServeFacts, VariableFacts
    from specfix.engines.facts.speculative import MtpFacts, SpeculativeFacts, SpeculatorsFacts

SCHEMA = "specfix/engine-v1"

# section to the module of its class, which is imported when a section is first asked for
SECTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "runner": ("decisions", "RunnerFacts"),
    "lengths": ("drafting", "LengthFacts"),
    "rope": ("drafting", "RopeFacts"),
    "eagle": ("drafting", "EagleFacts"),
    "layers": ("drafting", "LayerFacts"),
    "methods": ("drafting", "MethodFacts"),
    "traits": ("drafting", "TraitFacts"),
    "cpu": ("hardware", "CpuFacts"),
    "triton": ("hardware", "TritonFacts"),
    "blocks": ("hardware", "BlockFacts"),
    "backends": ("backends", "BackendFacts"),
    "platforms": ("backends", "PlatformFacts"),
    "speculative": ("speculative", "SpeculativeFacts"),
    "mtp": ("speculative", "MtpFacts"),
    "speculators": ("speculative", "SpeculatorsFacts"),
    "quantisation": ("quantisation", "QuantisationFacts"),
    "numbers": ("numbers", "NumberFacts"),
    "parallel": ("numbers", "ParallelFacts"),
    "serve": ("serving", "ServeFacts"),
    "variables": ("serving", "VariableFacts"),
    "requirements": ("serving", "RequirementFacts"),
    "configs": ("classes", "ConfigClassFacts"),
}


@record(frozen=True)
class Engine:
    """Facts of one release. ``source``: "shipped" (or "shipped, by the image's tag"), "installed here", or the path
    that was read.

    ``unknown`` maps a fact (``lengths.v1_guard``), or an entry of one (``eagle.support.LlamaForCausalLM``), to the
    reason for which it could not be read. A section is made of its JSON when it is first asked for: most checks need
    few of them.
    """

    name: str
    version: str
    source: str
    runner: RunnerFacts
    lengths: LengthFacts
    rope: RopeFacts
    eagle: EagleFacts
    layers: LayerFacts
    methods: MethodFacts
    traits: TraitFacts
    cpu: CpuFacts
    triton: TritonFacts
    blocks: BlockFacts
    backends: BackendFacts
    platforms: PlatformFacts
    speculative: SpeculativeFacts
    mtp: MtpFacts
    speculators: SpeculatorsFacts
    quantisation: QuantisationFacts
    numbers: NumberFacts
    parallel: ParallelFacts
    serve: ServeFacts
    variables: VariableFacts
    requirements: RequirementFacts
    configs: ConfigClassFacts
    unknown: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def lazy(cls, head: Mapping[str, Any], sections: Mapping[str, Any]) -> Engine:
        """An engine whose ``sections`` are still JSON."""
        engine = object.__new__(cls)
        engine.__dict__.update(head, _sections=sections)
        return engine

    @cached_property
    def outcomes(self) -> Outcomes:
        """What was decided before by these facts."""
        return Outcomes()

    def __getattr__(self, name: str) -> Any:
        """A section that is not made yet. CannotCheck where its JSON is not that of the section."""
        sections = self.__dict__.get("_sections", {})
        if name not in SECTIONS or name not in sections:
            raise AttributeError(name)
        from specfix.engines.serial import make_section

        try:
            self.__dict__[name] = section = make_section(name, sections[name])
        except ValueError as error:
            raise CannotCheck(f"the facts of {self} ({self.source}) are damaged: {error}") from error
        return section

    def __str__(self) -> str:
        return f"{self.name} {self.version}"
