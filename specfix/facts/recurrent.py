"""Targets with recurrent layers (Mamba, gated delta nets …): whether they are, and how their states are cached."""

from __future__ import annotations

from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of, first_known
from specfix.facts.runner import traits

# Keys that size a Mamba-2 layer, by the names that the families give them.
HEADS = ("mamba_n_heads", "n_mamba_heads")
HEAD_DIM = ("mamba_d_head", "mamba_headdim")
GROUPS = ("mamba_n_groups", "mamba_ngroups")

BYTES = {"bfloat16": 2, "float16": 2, "half": 2, "float32": 4, "float": 4}


def recurrent(target: Target, engine: Engine) -> bool:
    """Whether some of the target's layers keep a state instead of a KV cache."""
    name = architecture_of(target, engine)
    if name in engine.traits.unreadable or name not in engine.methods.architectures:
        raise MissingFact(f"whether {name} of {engine} has recurrent layers")
    found = traits(target, engine)
    return bool(found.get("is_hybrid") or found.get("is_attention_free"))


def recurrent_mode(target: Target, serving: Serving, engine: Engine, recurrent: bool) -> str:
    """mamba_cache_mode as it will be: "none" where prefixes are not cached, else "align" or "all"."""
    if not recurrent:
        raise NotApplicable("the target has no recurrent layers")
    facts, what = engine.blocks.recurrent, f"how {engine} caches the states of recurrent layers"
    asked = serving.flag("enable_prefix_caching")
    if asked is None:
        asked = known(facts.cached, what)
    if not asked:
        return "none"
    caching = facts.caching
    if caching is None and facts.cached is None:
        raise MissingFact(what)
    name = architecture_of(target, engine)
    cacheable = name in known(facts.cacheable, what)
    if caching in {None, "none"} or (caching == "some" and not cacheable):
        return "none"
    stated = serving.flag("mamba_cache_mode")
    if stated == "all" and facts.all_drafts is not None:
        return "all" if cacheable else "align"
    if stated == "align":
        return "align"
    return known(facts.cached_mode, what) if cacheable else "align"


def recurrent_draft(draft: Draft, target: Target, engine: Engine) -> bool:
    """Whether a draft model of its own has recurrent layers beside its attention."""
    if draft.is_part_of(target):
        raise NotApplicable("the engine builds the layers of a built-in draft itself")
    name = known(first_known(draft.architectures, engine), f"architectures in {draft.config.file}")
    if name in engine.traits.unreadable or name not in engine.methods.architectures:
        raise MissingFact(f"whether {name} of {engine} has recurrent layers")
    kinds = draft.config.find("layer_types")
    hybrid = name in engine.traits.having.get("is_hybrid", ())
    return hybrid and not (kinds is not None and all(kind == "attention" for kind in kinds[1]))


def state_pages(target: Target, serving: Serving, recurrent_mode: str) -> tuple[int, int, int]:
    """Bytes of a page of the attention layers, to which those of Mamba-2 states are padded; of a state without drafts;
    and of what each drafted token adds to it.

    The page is the smallest multiple of 16 tokens that holds a state, as ``HybridAttentionMambaModelConfig`` (later
    ``_align_hybrid_block_size``) plans it; with states at every block a multiple of the kernel's chunk too."""
    given = None if serving.dtype == "auto" else serving.dtype
    size = BYTES.get(str(given or target.config.value("dtype", "torch_dtype") or ""))
    size = known(size, f"the size of the type of {target.reference} (--dtype)")
    stated = (serving.kv_cache_dtype, serving.flag("mamba_cache_dtype"), serving.flag("mamba_ssm_cache_dtype"))
    if any(value not in {None, "auto"} for value in stated) or target.config.find("mamba_ssm_cache_dtype"):
        raise MissingFact("the size of a cached value in a type of its own")
    if serving.block_size is not None or serving.flag("mamba_block_size") is not None:
        raise MissingFact("the page of a block size that is given")
    parts = serving.tensor_parallel_size
    heads, dim, state = target.integer(*HEADS), target.integer(*HEAD_DIM), target.integer("mamba_d_state")
    groups, kernel = target.integer(*GROUPS), target.integer("mamba_d_conv")
    inner = target.number("mamba_d_ssm") or int(target.integer("mamba_expand") * target.integer("hidden_size"))
    if groups % parts:
        groups += parts - groups
    column = (inner + 2 * groups * state) // parts * size
    states = column * (kernel - 1) + heads // parts * dim * state * size
    attention_heads = target.integer("num_attention_heads")
    head = target.number("attention_head_dim") or target.number("head_dim")
    head = head or target.integer("hidden_size") // attention_heads
    kv_heads = target.number("num_key_value_heads") or attention_heads
    token = 2 * max(1, kv_heads // parts) * head * size
    step = 16 if recurrent_mode != "all" else target.integer("mamba_chunk_size")
    tokens = -(-states // (step * token)) * step
    return tokens * token, states, column
