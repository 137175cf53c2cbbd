"""What a release does on a machine: CPU, Triton, KV cache blocks."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from specfix.engines.facts.recurrent import RecurrentFacts
from specfix.record import record


@record(frozen=True)
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


@record(frozen=True)
class CpuFacts:
    """Speculation on the CPU platform.

    ``refuses``: the CPU runner refuses any speculation (the assertion's text). ``stand_ins``: launches that
    will fail. ``aux_setup``: the CPU runner sets the target's aux layers up after loading.
    ``sampling_expands_copy``: with the stand-ins ``expand_batch_to_tokens`` fills a converted copy, so that
    temperature, top_k and top_p stay uninitialised for sampled requests (upstream vllm#55005).
    ``spared_by_triton``: where Triton is usable, no stand-in is put in place.
    ``fp8_cache_needs``: flags of a CPU, one of which a KV cache in fp8 asks for; none: any CPU does.
    ``cache_bytes_heeded``: --kv-cache-memory-bytes says what the cache takes of the host's memory.
    """

    refuses: str | None
    stand_ins: tuple[StandIn, ...]
    aux_setup: bool | None
    sampling_expands_copy: bool | None
    spared_by_triton: bool | None = None
    fp8_cache_needs: tuple[str, ...] = ()
    cache_bytes_heeded: bool | None = None


@record(frozen=True)
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


@record(frozen=True)
class KernelSizes:
    """Kernel block sizes of an attention backend: exact ``sizes``, ``multiples`` of a number, or both.

    Both None: unknown. ``special``: what holds instead where a ``condition`` (the source's own words) is met,
    the first that is."""

    sizes: tuple[int, ...] | None
    multiples: tuple[int, ...] | None
    condition: str | None = None
    special: tuple[KernelSizes, ...] = ()


Unit = Literal["manager", "kernel"]


@record(frozen=True)
class LatentBlocks:
    """The block size that the CPU platform gives a model with latent attention, whatever is asked for.

    ``unless_amx``: not where the CPU has AMX's tiles. ``not_types``: model types that have one of their own.
    """

    size: int
    unless_amx: bool = False
    not_types: tuple[str, ...] = ()


@record(frozen=True)
class BlockFacts:
    """KV cache blocks: the manager's (set by --block-size) and the kernel's (addressed by a backend).

    ``proposer``: the unit in which the V1 runner's draft proposer computes slots; ``table``: the unit of the
    block table it reads. ``common_size``: the release picks a common kernel size for a group and refuses
    where there is none. ``default``: --block-size when not given, by platform ("cuda", "cpu", "rocm"); None
    where it is computed. ``default_adapts``: platform to whether a backend that does not take the default
    then gets a size of its own. ``backends``: backend name (FLASH_ATTN) to its kernel sizes.
    ``cpu_backend``: the backend of the CPU platform for plain attention. ``recurrent``: of layers that keep a state.
    ``windows_own``: layers with a sliding window take a block size of their own, after which the others' may be raised.
    ``cpu_latent``: see :class:`LatentBlocks`; None where the release has none. ``override_checked``: what
    --num-gpu-blocks-override leaves must hold one sequence of max_model_len, else the start ends. ``null_reserved``:
    one block, which the pool keeps for itself, is taken from it first. ``sequence_checked``: what there is memory for
    must hold one sequence of max_model_len, else the start ends.
    """

    proposer: Unit | None
    table: Unit | None
    common_size: bool | None
    default: dict[str, int | None]
    backends: dict[str, KernelSizes]
    cpu_backend: str | None
    default_adapts: dict[str, bool] = field(default_factory=dict)
    recurrent: RecurrentFacts = field(default_factory=RecurrentFacts)
    windows_own: bool | None = None
    cpu_latent: LatentBlocks | None = None
    override_checked: bool | None = None
    null_reserved: bool | None = None
    sequence_checked: bool | None = None
