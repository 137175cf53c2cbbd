"""What a release does with a draft: lengths, rotary tables, auxiliary states, layers, methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


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
    ``aux_final_layer``: target architecture to whether the id L gives a state (the last layer's output).
    ``language_by_config``: architectures whose decoder is of the class that their ``text_config`` names: what
    is said of its aux states there depends on that class, and they are not in ``aux_final_layer``.
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
    language_by_config: tuple[str, ...] = ()
    fc_states: dict[str, tuple[str, ...] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """Where the order of the draft's layer names decides something: file to "sorted" or "unsorted".

    Unsorted is a bare set. A loop that treats all names alike and a look at any one of them do not count."""

    iteration: dict[str, Literal["sorted", "unsorted"]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """Speculative methods and architectures that the release knows.

    ``methods``: values of the ``method`` key. ``architectures``: registry name to "module:Class", the module as the
    registry writes it (a bare name is one of the model folder). ``drafts``: those that the registry keeps for
    speculative decoding; ``dropped``: names of earlier registries to the last release that had them.
    """

    methods: tuple[str, ...]
    architectures: dict[str, str]
    drafts: tuple[str, ...] = ()
    dropped: dict[str, str] | None = None


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
