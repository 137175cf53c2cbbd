"""Quantised weights and KV caches: whose quantisation a draft's layers are built with, and what a release refuses."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from specfix.record import record

Origin = Literal["target", "draft", "own", "none"]


@record(frozen=True)
class OwnCache:
    """What an architecture's own attention says of the KV cache (on CUDA). ``refuses``: values of --kv-cache-dtype
    with which it ends the start; ``plain``: attention backends by whose name it is made in a way that takes any."""

    refuses: tuple[str, ...]
    plain: tuple[str, ...] = ()


@record(frozen=True)
class QuantisationFacts:
    """``names``: methods that --quantization may name, without a plugin's own.

    ``drafts``: architecture of a draft to whose quantization config its layers are built with: the "target"'s, the
    "draft"'s own, "own" (one that the class makes up itself), or "none" at all. ``joins``: architecture to the linear
    layers beside its decoder layers (``fc``, ``eh_proj``), each with the quantisation methods under which it is built
    without quantisation all the same; None: it always is. ``kv_cache_dtype``: architectures whose layers are told the
    dtype of the KV cache; those of other drafts take the model's own.

    ``ignore_keys``: quantisation method to the keys of quantization_config that can spare layers; ``reads_tensors``:
    methods that look into the checkpoint for what is quantised where no key says so; ``experts_too``: those of them
    that look there for experts as well.
    ``empty_method_is_none``: a quantization_config without a quant_method counts as none (else it is refused).
    ``null_algo_refused``: one of ModelOpt without a quant_algo ends the start. ``modelopt_file``: where config.json has
    none, hf_quant_config.json is read.

    ``unquantised_moe``: values of --moe-backend that experts without quantisation take besides "auto"; empty where
    they take any. ``draft_moe_backend``: runners that heed the speculative config's moe_backend.
    ``assistant_scales``: runners in which a Gemma 4 assistant takes the KV scales of the layers whose cache it reads.
    ``half_guarded``: architectures of drafts whose class does anything about float16.

    ``overridden``: other texts that a quant_method may be, for a method of ``names`` makes it its own; None where the
    release takes one that nobody knows. ``config_files``: method to the ends of the names of the files of which one
    must be there where config.json has no quantization_config; methods that can do without are left out.
    ``own_caches``: by architecture, of those whose attention asks for the dtype of the KV cache itself.
    """

    names: tuple[str, ...] | None = None
    drafts: dict[str, Origin] | None = None
    joins: dict[str, dict[str, tuple[str, ...] | None]] | None = None
    kv_cache_dtype: tuple[str, ...] | None = None
    ignore_keys: dict[str, tuple[str, ...]] | None = None
    reads_tensors: tuple[str, ...] | None = None
    experts_too: tuple[str, ...] | None = None
    empty_method_is_none: bool | None = None
    null_algo_refused: bool | None = None
    modelopt_file: bool | None = None
    unquantised_moe: tuple[str, ...] | None = None
    draft_moe_backend: tuple[str, ...] | None = None
    assistant_scales: tuple[str, ...] | None = None
    half_guarded: tuple[str, ...] | None = None
    overridden: tuple[str, ...] | None = None
    config_files: dict[str, tuple[str, ...]] | None = None
    own_caches: dict[str, OwnCache] = field(default_factory=dict)
