"""What a release does with a draft: lengths, rotary tables, auxiliary states, layers, methods."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from specfix.record import record


@record(frozen=True)
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
    ``overrides_reach_draft``: whether what --hf-overrides set in the target's config is set in the draft's as well.
    ``refuses_longer``: whether a length that is asked for and is above the derived one ends the start;
    ``longer_excused_by`` is the config key that allows it where it is as large, ``longer_allowed_by`` the variable.
    ``own_bounded_by``: the lengths ("draft", "target") that max_model_len of the speculative config may not pass;
    ``own_is_draft_length``: whether it is what the draft's ModelConfig is asked for, and checked as ``refuses_longer``.
    ``refuses_none``: whether a model's length below 1 ends the start, a derived one too.
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
    overrides_reach_draft: bool | None = None
    refuses_longer: bool | None = None
    longer_excused_by: str | None = None
    longer_allowed_by: str | None = None
    own_bounded_by: tuple[str, ...] | None = None
    own_is_draft_length: bool | None = None
    refuses_none: bool | None = None


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


@record(frozen=True)
class RopeFacts:
    """Rows of the rotary table (cos_sin_cache) by rope_type, as ``get_rope`` and its classes size it.

    A key is a rope_type; where another config key chooses another class, that key is joined to it: "default" but
    "default+mrope_section", "yarn" but "yarn+mrope_section". ``mrope`` is the rule of "default+mrope_section".
    ``needed``: by rope_type, the keys that ``get_rope`` takes from the block without a default; "a|b" is one of two.
    ``share_bounded``: it refuses a partial_rotary_factor that is not above 0 and at most 1.
    ``fractions_only``: types whose class takes a factor for a list of them unless it is a float: a whole number ends
    the start. ``types``: those that it knows; another ends the start. None where it refuses none.
    ``type_pairs``: a block with an older ``type`` beside another ``rope_type`` ends the start, but for these; None
    where they are not compared. ``sections``: by type, a key without which the block does, too.
    """

    rows: dict[str, Rows] | None
    mrope: Rows | None
    needed: dict[str, tuple[str, ...]] | None = None
    share_bounded: bool | None = None
    fractions_only: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    type_pairs: dict[str, str] | None = None
    sections: dict[str, str] = field(default_factory=dict)


@record(frozen=True)
class Head:
    """What the class of a drafting head builds, and what its ``load_weights`` makes of a checkpoint.

    ``parts``: paths of modules and parameters that a checkpoint may hold, in its own names, layer numbers as ``*``;
    ``x.**`` is anything under x. A name that is none of them ends the start. ``layers``: "config" where
    num_hidden_layers are built, "one" where always one is. ``doubled``: the first layer's attention takes embeddings
    and hidden states side by side. ``keys``: keys of the config that the class asks for, of those that change what is
    built. ``mapping``: when there is a place for ``d2t``: "always", where draft_vocab_size is of "other size" than the
    target's vocabulary, where it is "smaller"; None: never. ``notes_own``: tensors (lm_head, embed_tokens) that it
    notes when the checkpoint has them. ``skipped``: words of names that are passed over, some of them in certain cases
    only. Names are changed by ``patterns``, regular expressions that are replaced, then by ``renames``, parts of names
    that are (``midlayer.``), then by ``prefixes``; ``renames_unread``: and in other ways. ``fc_ids``: lists of the
    config's dflash_config or eagle_config whose length is the number of states that ``fc`` takes, in the order in which
    they count, before the number of the draft's layers; ``*``: the ids that the runner takes.
    ``demands``: tensors without which a draft of a reduced vocabulary is refused (lm_head, d2t). ``fc_states``: as in
    EagleFacts, () where it is not read. ``fc_bias``: whether ``fc`` has a bias. ``qkv_bias``: the key of the config
    that gives attention's q, k and v one, "never" where they have none; None: not read. ``biases``: the same of other
    parts of a layer (``self_attn.o_proj``, ``mlp``): any of the keys gives one. ``passes_bias``: a bias that no layer
    has is passed over; elsewhere it ends the start as any other name does. ``passes_unknown``: so is any name that is
    none of its own. ``scaled_by``: the key of the config by whose value logits are multiplied, unless it is absent
    (null is a value).
    """

    parts: tuple[str, ...]
    layers: Literal["config", "one"] | None
    doubled: bool
    keys: tuple[str, ...]
    mapping: Literal["always", "other size", "smaller"] | None
    notes_own: tuple[str, ...]
    skipped: tuple[str, ...]
    renames: dict[str, str] = field(default_factory=dict)
    fc_ids: tuple[str, ...] = ()
    demands: tuple[str, ...] = ()
    fc_states: tuple[str, ...] = ()
    fc_bias: bool | None = None
    qkv_bias: Literal["attention_bias", "never"] | None = None
    passes_bias: bool = False
    passes_unknown: bool = False
    scaled_by: str | None = None
    biases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    patterns: dict[str, str] = field(default_factory=dict)
    renames_unread: bool = False


@record(frozen=True)
class Decoder:
    """A whole model of plain decoder layers (Llama and its kin), as its class builds it and takes its checkpoint.

    num_hidden_layers layers are built, each with q, k and v of one head size and an MLP of gate, up and down.
    ``parts``: names under ``model.``; ``layer_parts``: those under a layer; ``beside``: what stands beside the model
    (lm_head). Where it is ``strict``, a name that is none of them ends the start. ``head_dim``: whether the key of that
    name counts; else a head is as wide as hidden_size / num_attention_heads.
    """

    parts: tuple[str, ...]
    layer_parts: tuple[str, ...]
    head_dim: bool
    strict: bool
    beside: tuple[str, ...] = ()


@record(frozen=True)
class Borrowing:
    """When a draft takes what the target has in the place of its own.

    ``embeddings``: where its checkpoint is without them ("missing"), and they are as wide as the target's ("missing,
    same width"), where both have the "same shape", or "always"; None: unknown. ``lm_head``: by method, "" for any
    other: "missing", "same shape", "always", "never", or where it has no ``d2t`` ("unmapped").
    """

    embeddings: Literal["missing", "missing, same width", "same shape", "always"] | None
    lm_head: dict[str, str]


@record(frozen=True)
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

    ``decoders``: architecture to its Decoder; classes that are built or loaded in another way are left out.
    ``heads``: draft architecture to what its class builds. ``borrowing``: by runner ("V1", "V2"), and by runner and
    method ("V2 dflash") where a method has a loader of its own. ``mask_places``: runner to the keys that give a
    parallel drafter its mask token, the first that is there counts, and none ends the start. ``refuse_missing``:
    built-in drafts whose class refuses a checkpoint without their layers; others run with whatever is in memory.
    ``mtp_own``: built-in drafts to what their layers must bring though the target has it too (embed_tokens,
    shared_head.head): without it an unquantised checkpoint is refused. ``load_config``: runner to whether it loads a
    head as ``draft_load_config`` says. ``checks_heads``: whether an embedding or a head that no tensor fills ends the
    start of an unquantised model, as other parameters do. ``load_keys``: keys that a loader takes in its extra config,
    others being refused; None where it is not read.
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
    heads: dict[str, Head] = field(default_factory=dict)
    decoders: dict[str, Decoder] = field(default_factory=dict)
    borrowing: dict[str, Borrowing] = field(default_factory=dict)
    mask_places: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refuse_missing: tuple[str, ...] = ()
    mtp_own: dict[str, tuple[str, ...]] = field(default_factory=dict)
    load_config: dict[str, bool] = field(default_factory=dict)
    checks_heads: bool = False
    load_keys: tuple[str, ...] | None = None


@record(frozen=True)
class LayerFacts:
    """What becomes of the draft's layers.

    ``iteration``: where the order of their names decides something: file to "sorted" or "unsorted". Unsorted is a bare
    set. A loop that treats all names alike and a look at any one of them do not count.
    ``windowed``: draft architecture to whether each layer's attention gets a window of its own, by the config.
    ``past_lists``: architectures of built-in drafts whose layers, numbered on from the target's last, look their number
    up in the config's layer_types, however long that is. ``cut_lists``: model types whose own config class keeps no
    more of layer_types than num_hidden_layers."""

    iteration: dict[str, Literal["sorted", "unsorted"]] = field(default_factory=dict)
    windowed: dict[str, bool] = field(default_factory=dict)
    past_lists: tuple[str, ...] | None = None
    cut_lists: tuple[str, ...] | None = None


@record(frozen=True)
class Renaming:
    """The name of a class for a draft: ``prefix`` before its own, unless that starts or ends so, or is one of
    ``names``."""

    prefix: str
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def of(self, name: str) -> str:
        """What becomes of ``name``."""
        kept = name.startswith(self.starts) or name.endswith(self.ends) or name in self.names
        return name if kept else f"{self.prefix}{name}"


@record(frozen=True)
class MethodFacts:
    """Speculative methods and architectures that the release knows.

    ``methods``: values of the ``method`` key. ``architectures``: registry name to "module:Class", the module as the
    registry writes it (a bare name is one of the model folder). ``drafts``: those that the registry keeps for
    speculative decoding; ``dropped``: names of earlier registries to the last release that had them; ``multimodal``:
    those of models that take more than text.

    ``renamed``: method to what it makes of a draft's architectures where the config is no wrapper (EAGLEConfig).
    ``drafters``: runner to the methods that it has a drafter for; it dies of any other one. ``extra_slots_refuse``:
    what the V1 runner's drafters refuse that need more input slots than the target (a draft model, parallel drafting):
    "multimodal" targets, drafts with "mrope"; each with the methods whose own drafter allows it.
    ``mla_types``: model types that may have multi-head latent attention, ``mla_types_of_heads``: those of a renamed
    draft's own config. A draft of another type gets plain attention, whatever its config states.
    ``suffixes``: endings of names that the registry takes for one another.
    """

    methods: tuple[str, ...]
    architectures: dict[str, str]
    drafts: tuple[str, ...] = ()
    dropped: dict[str, str] | None = None
    multimodal: tuple[str, ...] | None = None
    renamed: dict[str, Renaming] | None = None
    drafters: dict[str, tuple[str, ...]] | None = None
    extra_slots_refuse: dict[str, tuple[str, ...]] | None = None
    mla_types: tuple[str, ...] | None = None
    mla_types_of_heads: tuple[str, ...] | None = None
    suffixes: tuple[str, ...] | None = None


@record(frozen=True)
class TraitFacts:
    """What the engine knows of a target by its class and config.

    ``having``: trait (is_hybrid, is_attention_free, has_inner_state) to the architectures whose class bears it;
    ``unreadable``: architectures of which it cannot be told. ``expert_keys``: config keys of which the first present
    one is the number of experts, so that a model is MoE where it is above 0.

    Of drafts, and of targets of plain decoder layers: ``silu_only``: architectures that end the start over a hidden_act
    other than silu; ``window_read``: those that read ``sliding_window``, whether the config has it or not, for a layer
    of type sliding_attention; ``keys_read``: architecture to keys that it cannot be made without.
    """

    having: dict[str, tuple[str, ...]]
    unreadable: tuple[str, ...]
    expert_keys: tuple[str, ...] | None
    silu_only: tuple[str, ...] | None = None
    window_read: tuple[str, ...] | None = None
    keys_read: dict[str, tuple[str, ...]] | None = None
