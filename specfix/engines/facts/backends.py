"""Attention backends, and what a platform takes where nobody chooses.

The conditions here speak of ``capability`` ([9, 0]), ``capability.major``, ``capability.minor``, ``platform`` ("cuda",
"rocm", "cpu", "xpu", "tpu"), ``head_size``, ``kv_cache_dtype``, ``device_memory`` (bytes), ``device_name`` (lower
case), ``cpu_architecture`` ("X86", "ARM" …), the parameters of the function that they are read from (``use_mla``), and
of calls by the engine's own words, such as ``get_flash_attn_version()``.
"""

from __future__ import annotations

from dataclasses import field

from specfix.engines.compiled import Condition
from specfix.engines.facts.decisions import Step
from specfix.record import record


@record(frozen=True)
class Backend:
    """One attention backend, by what its class answers (v1/attention/backend.py, v1/attention/backends/).

    ``path``: its class; None where the name has none of its own (CUSTOM: registered by a plugin). ``present``: False
    where the release names a class that it does not contain, so that the backend cannot be chosen.

    ``dtypes``: of the model, as torch names them; ``kv_cache_dtypes``: values of --kv-cache-dtype that it takes on any
    machine; ``head_sizes``: () for any; ``attention_types``: "decoder", "encoder_only" …; ``capability``: the compute
    capabilities that it takes, a condition. ``layouts``: layouts of the KV cache that it takes, the preferred one
    first ("HND", "NHD"; from 0.29 on the axes in order, "LBHNC"): the first step that holds, () where any will do.
    ``mla``: for multi-head latent attention alone; ``sparse``: for sparse attention alone; ``non_causal``: it takes
    the non-causal attention of a parallel drafter; ``sinks``, ``mm_prefix``, ``sliding_window``: it takes layers with
    attention sinks, with bidirectional attention over an image, with a window.

    ``conditions``: by the name of a field, or by field and value (``kv_cache_dtypes.fp8``), what the answer hangs on
    where it is neither yes nor no; a field that hangs on something is None then. A field is also None where the
    release does not ask the class for it, so that nothing is refused for its sake and nobody promises that it works.
    Where it could not be read ``backends.backends.<NAME>.<field>`` is in ``Engine.unknown``.
    """

    path: str | None
    present: bool = True
    dtypes: tuple[str, ...] | None = None
    kv_cache_dtypes: tuple[str, ...] | None = None
    head_sizes: tuple[int, ...] | None = None
    attention_types: tuple[str, ...] | None = None
    capability: Condition | None = None
    layouts: tuple[Step, ...] | None = None
    mla: bool | None = None
    sparse: bool | None = None
    non_causal: bool | None = None
    sinks: bool | None = None
    mm_prefix: bool | None = None
    sliding_window: bool | None = None
    conditions: dict[str, Condition] = field(default_factory=dict)


@record(frozen=True)
class DraftAttention:
    """What becomes of attention for a draft.

    ``own``: runner ("V1"), or runner and family of drafters ("V2.dflash"), to whether the draft's backend is chosen for
    itself, and by ``attention_backend`` of the speculative config; else it has the target's, chosen or forced.
    ``chained``: platform to the attention metadata (class names) with which a draft may draft a second token, and
    others end in an error; a platform that is not there takes any. ``flashinfer_graphs``: major compute capabilities on
    which FlashInfer lets a step that verifies drafts be captured in one CUDA graph. ``connector_waits``: in the V1
    runner a KV connector's step does not end before the draft has run. ``one_group``: the layers of a draft must be in
    one KV cache group of the V1 runner's, but for drafters with a test of their own.
    """

    own: dict[str, bool] = field(default_factory=dict)
    chained: dict[str, tuple[str, ...]] = field(default_factory=dict)
    flashinfer_graphs: tuple[int, ...] | None = None
    connector_waits: bool | None = None
    one_group: bool | None = None


@record(frozen=True)
class BackendFacts:
    """``backends``: by the name that --attention-backend (VLLM_ATTENTION_BACKEND in older releases) takes
    (v1/attention/backends/registry.py). Their block sizes are in ``blocks``. ``draft``: what a draft gets of them."""

    backends: dict[str, Backend] = field(default_factory=dict)
    draft: DraftAttention = field(default_factory=DraftAttention)


@record(frozen=True)
class PlatformFacts:
    """What a release takes on each platform ("cuda", "rocm", "cpu", "xpu") where the user says nothing.

    ``backends``: the attention backends in the order in which they are tried, those that refuse the model being
    passed over; a class without a name by its path (``_get_backend_priorities``, else ``get_attn_backend_cls`` in
    platforms/). ``dtypes``: types of the model that the platform has, the one first that "auto" falls back to
    (``supported_dtypes``). In both the first step that holds counts, and ``then`` is None where the platform refuses.

    ``max_num_batched_tokens``, ``max_num_seqs``: defaults by who asks, "LLM_CLASS" (offline) or "OPENAI_API_SERVER",
    before they are fitted to the model (engine/arg_utils.py). On platforms in ``per_worker`` they are multiplied by
    tensor and pipeline parallel size.

    ``forced``: platform to config field (``compilation_config.mode``) to what the platform sets it to, whatever the
    user says (``check_and_update_config`` in platforms/); of the steps that hold the last one counts. Fields of which
    that hangs on more than the config are not in it.

    ``async_scheduling``: whether scheduling is asynchronous where nobody says so (``VllmConfig.__post_init__`` in
    config/vllm.py): steps by method of speculation, executor and the like, empty where the release does not decide.
    """

    backends: dict[str, tuple[Step, ...] | None] = field(default_factory=dict)
    dtypes: dict[str, tuple[Step, ...] | None] = field(default_factory=dict)
    max_num_batched_tokens: dict[str, tuple[Step, ...] | None] = field(default_factory=dict)
    max_num_seqs: dict[str, tuple[Step, ...] | None] = field(default_factory=dict)
    per_worker: tuple[str, ...] = ()
    forced: dict[str, dict[str, tuple[Step, ...]]] = field(default_factory=dict)
    async_scheduling: tuple[Step, ...] = ()
