"""The facts that are read of one release. Plain values, so that a file of them is JSON and loads in milliseconds.

``None`` means that this fact could not be read of this source; ``Engine.unknown`` says why. Every reader is a module
``specfix.engines.read_*`` that takes a source tree and returns one of these sections.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

# A condition lifted from the engine's source: nested lists in prefix form, with the source's own dotted names, such as
#   ["and", ["==", ["name", "speculative_config.method"], ["const", "eagle3"]], ["name", "parallel_config.enable_dbo"]]
# The whole grammar is in specfix.engines.conditions.
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


@dataclass(frozen=True, slots=True)
class LengthFacts:
    """How lengths are derived from a config.

    ``keys``: config keys of which the smallest present one is the length, before RoPE scaling; ``overriding_key`` is
    the one that wins over all where it is set (model_max_length). ``unscaled_rope_types``: types whose factor is not
    applied. ``yarn_from_original``: yarn starts from original_max_position_embeddings (times factor).
    ``longrope_from_original``: where nobody gives a length, longrope takes original_max_position_embeddings of the
    config's top level.
    ``unscaled_model_types``: substrings of model_type for which no factor is applied at all (gemma3).
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
    overriding_key: str | None = None
    longrope_from_original: bool | None = None


Rows = Literal[
    "max_position",
    "max_position*factor",
    "max_position*4",
    "original",
    "original*factor",
    "original*4",
    "original*factor*4",
    "other",
]


@dataclass(frozen=True, slots=True)
class RopeFacts:
    """Rows of the rotary table (cos_sin_cache) by rope_type, as ``get_rope`` and its classes size it.

    A key is a rope_type; where another config key chooses another class, that key is joined to it: "default" but
    "default+mrope_section", "yarn" but "yarn+mrope_section". ``mrope`` is the rule of "default+mrope_section".
    """

    rows: dict[str, Rows] | None
    mrope: Rows | None


@dataclass(frozen=True, slots=True)
class EagleFacts:
    """EAGLE3 support and auxiliary hidden states.

    ``has_interface``: the release has a SupportsEagle3; without one the runner just calls the methods.
    ``support``: architecture to whether its class meets it through all bases and its inner model does give
    states (None: not readable; where platforms have classes of their own, CUDA's). ``config_stage``:
    substrings of the target's model_type of which one must match (None: the release has no such list);
    ``config_stage_methods``: the methods it guards.

    ``aux_places``: runner to the places of aux ids in the draft's config, first one with ids wins, each
    (dotted key, shift added to each id). An empty tuple: no config is asked. A runner that takes no aux
    states is absent. ``aux_hidden_by``: runner to places that are not read where the config has this
    non-empty key too. ``aux_unshifted``: place to the draft model_types for which nothing is added.
    ``use_aux_flag``: runner to whether it heeds ``eagle_config.use_aux_hidden_state``.

    ``default_aux``: architecture (or "" for the interface's default) to the formula used where the config has
    no ids, as terms of L, the number of decoder layers: ["2", "L//2", "L-3"]; None: an own formula that could
    not be read. ``default_aux_count``: what the source calls L. ``aux_deduplicates``: one state a layer, in
    order of layers, so repeated ids give one state, and ids below 0 or above L none, without a message.
    ``aux_final_layer``: architecture to whether the id L gives a state (the last layer's output).
    ``fc_states``: draft architecture to where the number of states that its ``fc`` takes comes from, the
    first that is there: keys of its config, len(key), a number.
    """

    has_interface: bool
    support: dict[str, bool | None]
    config_stage: tuple[str, ...] | None
    config_stage_methods: tuple[str, ...]
    aux_places: dict[str, tuple[tuple[str, int], ...]] | None
    default_aux: dict[str, tuple[str, ...] | None] | None
    aux_deduplicates: bool | None
    aux_hidden_by: dict[str, dict[str, str]] = field(default_factory=dict)
    aux_unshifted: dict[str, tuple[str, ...]] = field(default_factory=dict)
    use_aux_flag: dict[str, bool] = field(default_factory=dict)
    default_aux_count: dict[str, str] = field(default_factory=dict)
    aux_final_layer: dict[str, bool | None] = field(default_factory=dict)
    fc_states: dict[str, tuple[str, ...] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StandIn:
    """A launch of a Triton kernel that fails on a CPU without Triton, in spite of its stand-in.

    ``unexpected``: arguments that the stand-in has no place for; ``missing``: parameters that the launch
    leaves out; ``unreached``: the launcher kept the kernel itself, so the stand-in put in its place is never
    called."""

    kernel: str
    file: str
    line: int
    unexpected: tuple[str, ...]
    missing: tuple[str, ...] = ()
    unreached: bool = False


@dataclass(frozen=True, slots=True)
class CpuFacts:
    """Speculation on the CPU platform.

    ``refuses``: the CPU runner refuses any speculation (the assertion's text). ``stand_ins``: launches that
    will fail. ``aux_setup``: the CPU runner sets the target's aux layers up after loading.
    ``sampling_expands_copy``: with the stand-ins ``expand_batch_to_tokens`` fills a converted copy, so that
    temperature, top_k and top_p stay uninitialised for sampled requests (upstream vllm#55005).
    ``spared_by_triton``: where Triton is usable, no stand-in is put in place.
    """

    refuses: str | None
    stand_ins: tuple[StandIn, ...]
    aux_setup: bool | None
    sampling_expands_copy: bool | None
    spared_by_triton: bool | None = None


@dataclass(frozen=True, slots=True)
class TritonFacts:
    """When Triton counts as there.

    ``empty_devices_forgives``: on a CPU host HAS_TRITON stays true with no active driver where
    CUDA_VISIBLE_DEVICES is the empty string. ``sampler_min_rows``: on a CPU host with HAS_TRITON
    apply_top_k_top_p calls the Triton kernel from this many rows on (None: never);
    ``sampler_checks_platform``: it asks for the platform before that. ``cpu_backend``: in a CPU build a
    Triton counts if, and only if, it has a CPU backend.
    """

    empty_devices_forgives: bool | None
    sampler_min_rows: int | None
    sampler_checks_platform: bool | None
    cpu_backend: bool | None


@dataclass(frozen=True, slots=True)
class KernelSizes:
    """Kernel block sizes of an attention backend: exact ``sizes``, ``multiples`` of a number, or both.

    Both None: unknown. ``special``: what holds instead where a ``condition`` (the source's own words) is met,
    the first that is."""

    sizes: tuple[int, ...] | None
    multiples: tuple[int, ...] | None
    condition: str | None = None
    special: tuple[KernelSizes, ...] = ()


Unit = Literal["manager", "kernel"]


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """KV cache blocks: the manager's (set by --block-size) and the kernel's (addressed by a backend).

    ``proposer``: the unit in which the V1 runner's draft proposer computes slots; ``table``: the unit of the
    block table it reads. ``common_size``: the release picks a common kernel size for a group and refuses
    where there is none. ``default``: --block-size when not given, by platform ("cuda", "cpu", "rocm"); None
    where it is computed. ``default_adapts``: platform to whether a backend that does not take the default
    then gets a size of its own. ``backends``: backend name (FLASH_ATTN) to its kernel sizes. ``head_sizes``:
    backend name to the head sizes it takes, where it names any. ``cpu_backend``: the backend of the CPU
    platform for plain attention.
    """

    proposer: Unit | None
    table: Unit | None
    common_size: bool | None
    default: dict[str, int | None]
    backends: dict[str, KernelSizes]
    cpu_backend: str | None
    default_adapts: dict[str, bool] = field(default_factory=dict)
    head_sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """Where the order of the draft's layer names decides something: file to "sorted" or "unsorted".

    Unsorted is a bare set. A loop that treats all names alike and a look at any one of them do not count."""

    iteration: dict[str, Literal["sorted", "unsorted"]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """Speculative methods and architectures that the release knows.

    ``methods``: values of the ``method`` key. ``architectures``: registry name to "module:Class", the module as the
    registry writes it (a bare name is one of the model folder).
    """

    methods: tuple[str, ...]
    architectures: dict[str, str]


@dataclass(frozen=True, slots=True)
class TraitFacts:
    """What the engine knows of a target by its class and config.

    ``having``: trait (is_hybrid, is_attention_free, has_inner_state) to the architectures whose class bears it;
    ``unreadable``: architectures of which it cannot be told. ``expert_keys``: config keys of which the first present
    one is the number of experts, so that a model is MoE where it is above 0.
    """

    having: dict[str, tuple[str, ...]]
    unreadable: tuple[str, ...]
    expert_keys: tuple[str, ...] | None


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
