"""KVC011: a target and a draft whose kernels share no block size."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Hardware, Location, Serving, Target
from specfix.engines import Engine
from specfix.engines.facts.hardware import KernelSizes
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.attention import AITER, VARIABLE, asked_backend, candidates, is_mla
from specfix.facts.blocks import kernel_block, kernel_size, latent_blocks

WITHOUT = frozenset({"medusa", "mlp_speculator"})
RANK = "kv_lora_rank"
# block sizes that the engine may give the manager where nobody says one
SIZES = (1, 16, 32, 64, 128, 256)


@rule(
    "KVC011",
    "draft-block-conflict",
    severity="error",
    evidence=["vllm-project/vllm#39616", "vllm/v1/worker: select_common_block_size"],
    requires=["KVC001", "HWR006"],
)
def draft_block_conflict(
    target: Target, draft: Draft, serving: Serving, hardware: Hardware, engine: Engine
) -> Iterator[Finding]:
    """The target's backend and every one that the draft may get have no kernel block size in common."""
    if draft.is_part_of(target) or not is_mla(target) or is_mla(draft):
        raise NotApplicable("the draft has the target's kind of attention")
    if draft.kind in WITHOUT:
        raise NotApplicable(f"a {draft.kind} draft has no attention")
    if hardware.platform == "cpu":
        yield from on_cpu(target, draft, serving, hardware, engine)
        return
    if not known(engine.blocks.common_size, f"how {engine} picks a kernel block size"):
        raise NotApplicable("nothing is split into kernel blocks")
    own = candidates(hardware, engine, serving, mla=False)
    asked = asked_backend(serving, engine)
    tried = [asked] if asked else candidates(hardware, engine, serving, mla=True)
    found = {name: conflicts(name, own, serving, engine) for name in tried}
    if not any(found.values()):
        return
    # each is tried in turn, and why one is passed over is not all known; the first is what its switch asks for
    first = tried[0]
    if not found[first] or (asked is None and serving.env.get(AITER) is None):
        raise MissingFact("the attention backend (--attention-backend)")
    sizes = engine.blocks.backends
    yield Finding(
        f"{first} of {engine}, which the target has, works on blocks of {said(sizes[first])} tokens, and the draft, "
        f"which has ordinary attention, gets {' or '.join(own)}, which take {said(sizes[own[0]])}: there is no common "
        "block size, and the server does not start.",
        place(serving, engine),
        "warmup",
        related=(draft.at("architectures"),),
        repair=Repair("manual", "--attention-backend TRITON_MLA, or a release whose backends agree", ("engine_args",)),
    )


def on_cpu(target: Target, draft: Draft, serving: Serving, hardware: Hardware, engine: Engine) -> Iterator[Finding]:
    """A CPU has one backend for each kind of attention, and one block size where the target's is latent."""
    size = latent_blocks(target, serving, hardware, engine)
    if size is None:
        raise NotApplicable("no block size is forced on the draft")
    name = known(engine.blocks.cpu_backend, f"the CPU attention backend of {engine}")
    if kernel_block(name, size, engine) is not None:
        return
    yield Finding(
        f"On a CPU {engine} gives a target of model_type {target.model_type} with {RANK} {target.number(RANK)} blocks "
        f"of {size} tokens, whatever --block-size says, and {name}, which the draft's ordinary attention has, takes "
        f"{said(engine.blocks.backends[name])}: there is no common block size, and the server does not start.",
        target.at("model_type"),
        "warmup",
        related=(draft.at("architectures"),),
        repair=Repair("manual", "a draft with latent attention, or a GPU", ("speculative_config",)),
    )


def conflicts(theirs: str, own: list[str], serving: Serving, engine: Engine) -> bool:
    """Whether no block size suits the target's backend and any of the draft's."""
    manager = (serving.block_size,) if serving.block_size else SIZES
    taken = known(engine.blocks.backends.get(theirs), f"the block sizes of {theirs} in {engine}")
    sizes = [stated for name in own if (stated := engine.blocks.backends.get(name)) is not None]
    if unclear(taken):
        return False
    return bool(sizes) and all(
        not unclear(stated) and all(kernel_size(size, [taken, stated]) is None for size in manager) for stated in sizes
    )


def unclear(stated: KernelSizes) -> bool:
    return bool(stated.special) or (stated.sizes is None and stated.multiples is None)


def said(stated: KernelSizes) -> str:
    """The sizes in words."""
    parts = [str(size) for size in stated.sizes or ()] + [f"multiples of {base}" for base in stated.multiples or ()]
    return ", ".join(parts)


def place(serving: Serving, engine: Engine) -> Location:
    """What chose the target's backend."""
    if serving.attention_backend or asked_backend(serving, engine) is None:
        return serving.at("attention_backend" if serving.attention_backend else AITER)
    return serving.at("attention_config" if serving.flag("attention_config") else VARIABLE)
