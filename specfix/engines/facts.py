"""The facts that are read of one release. Plain values, so that a file of them is JSON and loads in milliseconds.

``None`` means that this fact could not be read of this source; ``Engine.unknown`` says why. Every reader is a module
``specfix.engines.read_*`` that takes a source tree and returns one of these sections.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

# A condition lifted from the engine's source: nested lists in prefix form, with the source's own dotted names.
#   ["and", c, ...]  ["or", c, ...]  ["not", c]  ["==", a, b]  ["in", a, b]  ["<", a, b] ...  ["is", a, None]
#   ["name", "speculative_config.method"]  ["const", "eagle3"]  ["list", a, ...]  ["call", "any", ...]  ["?", "why not liftable"]
Condition = list[Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One way out of a function: where ``when`` holds and no earlier step did, the outcome is ``then``.

    ``line`` is the line in the source file, for those who want to look."""

    when: Condition
    then: Any
    line: int


@dataclass(frozen=True, slots=True)
class RunnerFacts:
    """Which model runner is chosen: the steps of ``VllmConfig.use_v2_model_runner``, in order.

    ``then`` of a step is "V1" or "V2" (or "refused: why", where the step raises). ``unsupported`` holds what the V2
    runner does not support (``then`` is the engine's own name of the feature): any of them means "V1" where a step asks for
    the name ``unsupported``, and a refusal at start where V2 was forced. ``cpu`` overrides the choice on a CPU
    ("V1" where the CPU worker has no V2 runner). A release without a V2 runner has one step: always "V1".
    """

    steps: tuple[Step, ...]
    unsupported: tuple[Step, ...]
    forced_is_validated: bool | None
    cpu: Literal["V1", "as chosen"] | None


@dataclass(frozen=True, slots=True)
class LengthFacts:
    """How lengths are derived from a config.

    ``keys``: config keys of which the smallest present one is the length, before RoPE scaling. ``unscaled_rope_types``:
    types whose factor is not applied. ``yarn_from_original``: yarn starts from original_max_position_embeddings (times
    factor). ``unscaled_model_types``: substrings of model_type for which no factor is applied at all (gemma3).
    ``v1_guard``: in the V1 runner drafting stops when the longest sequence plus the tokens to draft passes the
    draft's derived length; ``guard_extra`` is how many tokens more a method counts (1 for dflash).
    ``raised_methods``: methods whose draft max_position_embeddings the config stage raises to the target's
    max_model_len; empty where that fix is absent. ``raised_rope_types``: only for these types (None: all types).
    ``raise_also_lifts_length``: whether the draft's derived length (the V1 guard) is raised as well.
    ``limits_target``: with the V2 runner the target's max_model_len is lowered to the draft's derived length,
    except where positions are raised.
    """

    keys: tuple[str, ...] | None
    unscaled_rope_types: tuple[str, ...] | None
    yarn_from_original: bool | None
    unscaled_model_types: tuple[str, ...] | None
    v1_guard: bool | None
    guard_extra: dict[str, int] | None
    raised_methods: tuple[str, ...] | None
    raised_rope_types: tuple[str, ...] | None
    raise_also_lifts_length: bool | None
    limits_target: bool | None


Rows = Literal["max_position", "max_position*factor", "max_position*4", "original*factor", "other"]


@dataclass(frozen=True, slots=True)
class RopeFacts:
    """Rows of the rotary table (cos_sin_cache) by rope_type, as ``get_rope`` and its classes size it.

    ``mrope`` is the rule for a type with an ``mrope_section``. ``types``: every rope_type that get_rope knows.
    """

    rows: dict[str, Rows] | None
    mrope: Rows | None


@dataclass(frozen=True, slots=True)
class EagleFacts:
    """EAGLE3 support and auxiliary hidden states.

    ``support``: architecture to whether its class meets ``supports_eagle3`` through all bases (None: not readable).
    ``config_stage``: substrings of the target's model_type of which one must match (None: the release has no such
    list); ``config_stage_methods``: the methods it guards. ``aux_places``: runner to the places of aux ids
    in the order in which that runner reads them, each (dotted key, shift added to each id). ``default_aux``: architecture
    (or "" for the interface's default) to the formula of the guess, as terms of L = num_hidden_layers:
    ["2", "L//2", "L-3"]. ``aux_deduplicates``: repeated ids yield one state.
    """

    has_interface: bool
    support: dict[str, bool | None]
    config_stage: tuple[str, ...] | None
    config_stage_methods: tuple[str, ...]
    aux_places: dict[str, tuple[tuple[str, int], ...]] | None
    default_aux: dict[str, tuple[str, ...]] | None
    aux_deduplicates: bool | None


@dataclass(frozen=True, slots=True)
class StandIn:
    """A call of a Triton kernel whose CPU stand-in does not take the call's arguments."""

    kernel: str
    file: str
    line: int
    unexpected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CpuFacts:
    """Speculation on the CPU platform.

    ``refuses``: the CPU runner refuses any speculation (the assertion's text). ``stand_ins``: calls that will fail.
    ``aux_setup``: the CPU runner sets the target's aux layers up after loading. ``sampling_expands_copy``:
    ``expand_batch_to_tokens`` fills a converted copy there without Triton, so that temperature, top_k and top_p stay
    uninitialised for sampled requests (upstream vllm#55005).
    """

    refuses: str | None
    stand_ins: tuple[StandIn, ...]
    aux_setup: bool | None
    sampling_expands_copy: bool | None


@dataclass(frozen=True, slots=True)
class TritonFacts:
    """When Triton counts as there.

    ``empty_devices_forgives``: HAS_TRITON stays true with no active driver where CUDA_VISIBLE_DEVICES is the empty
    string. ``sampler_min_rows``: apply_top_k_top_p calls the Triton kernel from this many rows on whenever HAS_TRITON
    (None: not without a check of the platform). ``cpu_backend``: a Triton with a CPU backend is used on purpose.
    """

    empty_devices_forgives: bool | None
    sampler_min_rows: int | None
    sampler_checks_platform: bool | None
    cpu_backend: bool | None


@dataclass(frozen=True, slots=True)
class KernelSizes:
    """Kernel block sizes of an attention backend: exact ``sizes`` and/or ``multiples`` of a number; both None: unknown."""

    sizes: tuple[int, ...] | None
    multiples: tuple[int, ...] | None
    condition: str | None = None


Unit = Literal["manager", "kernel"]


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """KV cache blocks: the manager's (what --block-size sets) and the kernel's (what a backend's kernel addresses).

    ``proposer``: the unit in which the draft proposer computes slots; ``table``: the unit of the block table it reads.
    ``common_size``: the release picks a common kernel size for a group and refuses where there is none.
    ``default``: --block-size when not given, by platform ("cuda", "cpu", "rocm"); None where it is computed.
    ``backends``: backend name (FLASH_ATTN) to its kernel sizes. ``priorities``: platform to backends in order of choice.
    """

    proposer: Unit | None
    table: Unit | None
    common_size: bool | None
    default: dict[str, int | None]
    backends: dict[str, KernelSizes]
    cpu_backend: str | None


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """Where the proposers iterate their set of draft layer names: file to "sorted" or "unsorted"."""

    iteration: dict[str, Literal["sorted", "unsorted"]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """Speculative methods and architectures that the release knows.

    ``architectures``: registry name to "module:Class". ``methods``: values of the ``method`` key."""

    methods: tuple[str, ...]
    architectures: dict[str, str]
