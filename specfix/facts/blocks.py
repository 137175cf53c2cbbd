"""KV cache blocks: the manager's size and the sizes that the attention backend's kernels take."""

from __future__ import annotations

from collections.abc import Sequence

from specfix.deployment import Hardware, Model, Serving, Target
from specfix.engines import Engine
from specfix.engines.facts.hardware import KernelSizes
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of
from specfix.facts.attention import asked_backend, tried_backends, uses_mla

AMX = "amx_tile"  # among a CPU's flags
BACKEND = "the attention backend (--attention-backend)"
BLOCK_SIZE = "the KV cache block size (--block-size)"


def backend(target: Target, serving: Serving, hardware: Hardware, engine: Engine) -> str:
    """Name of the attention backend: the only one that a CPU has for plain attention, else the one asked for."""
    if hardware.platform == "cpu":  # whatever is asked for: the CPU platform logs that it cannot, and takes its own
        if uses_mla(target, serving, engine):
            raise MissingFact("the attention backend for latent attention on a CPU")
        return known(engine.blocks.cpu_backend, f"the CPU attention backend of {engine}")
    if serving.attention_backend is not None:
        return serving.attention_backend.upper()
    raise MissingFact(BACKEND)


def fixed_kernels(target: Target, engine: Engine) -> dict[str, KernelSizes]:
    """Backends that layers of the target's class take whatever is chosen: those that stand in the folder of its own
    model. Of several (one for each platform) those that agree on their sizes."""
    module = engine.methods.architectures.get(architecture_of(target, engine), "").partition(":")[0]
    if module.count(".") < 2:  # a bare name, or a module of the folder of all models
        return {}
    found = {
        name: engine.blocks.backends[name]
        for name, one in engine.backends.backends.items()
        if one.path and one.path.startswith(f"{module}.") and name in engine.blocks.backends
    }
    return found if len(set(map(repr, found.values()))) == 1 else {}


def latent_blocks(target: Target, serving: Serving, hardware: Hardware, engine: Engine) -> int | None:
    """The block size that a CPU gives a target for its latent attention, whatever is asked for; None where it does
    not."""
    stated = engine.blocks.cpu_latent
    if hardware.platform != "cpu" or stated is None or target.model_type in stated.not_types:
        return None
    if not uses_mla(target, serving, engine):
        return None
    if stated.unless_amx and AMX in known(hardware.cpu_flags, f"whether the CPU has {AMX} (specfix hardware --save)"):
        return None
    return stated.size


def block_size(target: Target, serving: Serving, hardware: Hardware, engine: Engine) -> int:
    """Tokens in a block of the KV cache manager: --block-size, else the platform's default."""
    if latent := latent_blocks(target, serving, hardware, engine):
        return latent
    if serving.block_size is not None:
        return serving.block_size
    return known(engine.blocks.default.get(hardware.platform), BLOCK_SIZE)


def keeps_default(target: Target, serving: Serving, hardware: Hardware, engine: Engine) -> bool:
    """Whether the platform's default block size stays where none is given: each backend that the target may get takes
    it (``get_preferred_block_size`` in vllm/v1/attention/backend.py)."""
    if engine.blocks.default_adapts.get(hardware.platform) is False:
        return True
    size = engine.blocks.default.get(hardware.platform)
    if hardware.platform != "cuda" or size is None:
        return False
    asked = asked_backend(serving, engine)
    names = [asked] if asked else tried_backends(target, serving, hardware, engine)
    return all(kernel_block(name, size, engine) is not None for name in names)


def windowed(model: Model) -> bool:
    """Whether layers may have a sliding window."""
    size, used = (model.config.stated(key) for key in ("sliding_window", "use_sliding_window"))
    return size is not None and bool(size[1]) and (used is None or used[1] is not False)


def kernel_size(manager: int, backends: Sequence[KernelSizes]) -> int | None:
    """Block size of the kernels of one cache group, or None where no size suits all its backends.

    The manager's own size where every backend takes it, else the largest whole size of a backend that divides it and
    that all take (``select_common_block_size``).
    """
    if all(takes(sizes, manager) for sizes in backends):
        return manager
    exact = {size for sizes in backends for size in sizes.sizes or ()}
    fitting = [size for size in exact if manager % size == 0 and all(takes(sizes, size) for sizes in backends)]
    return max(fitting, default=None)


def takes(sizes: KernelSizes, size: int) -> bool:
    """Whether a backend's kernels take blocks of ``size`` tokens."""
    return size in (sizes.sizes or ()) or any(size % base == 0 for base in sizes.multiples or ())


def kernel_block(backend: str, block_size: int, engine: Engine) -> int | None:
    """Kernel block size under this backend; None where the engine refuses the manager's size."""
    if not known(engine.blocks.common_size, f"how {engine} picks a kernel block size"):
        raise NotApplicable("the release does not split blocks")
    stated = known(engine.blocks.backends.get(backend), f"the block sizes of {backend} in {engine}")
    outcomes = {kernel_size(block_size, [sizes]) for sizes in (stated, *stated.special)}
    if len(outcomes) > 1 or (stated.sizes is None and stated.multiples is None):
        raise MissingFact(f"which block sizes {backend} of {engine} takes on this hardware")
    return outcomes.pop()
