"""NUM007: the weights of target and draft are larger than the memory that they may take."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Hardware, Serving
from specfix.facts.budget import GIB
from specfix.facts.memory import Memory, Weights


@rule(
    "NUM007",
    "weights-exceed-memory",
    severity="warning",
    evidence=["vllm-project/vllm#22624", "vllm/v1/worker/gpu_worker.py: determine_available_memory"],
    requires=["MTH006"],
)
def weights_exceed_memory(draft: Draft, serving: Serving, hardware: Hardware, memory: Memory) -> Iterator[Finding]:
    """Target and draft do not fit into the devices, before any KV cache."""
    if memory.needed <= memory.allowed:
        return
    counted = memory.target.counted and memory.draft.counted
    cut = memory.cut
    share = f"gpu_memory_utilization {memory.share:g}" if memory.share < 1 else "all of it"
    yield Finding(
        f"The target's weights are {words(memory.target)}, over {cut} device{'s' if cut > 1 else ''}, and the draft's "
        f"{words(memory.draft)}, over {memory.draft_cut}: at least {gib(memory.needed)} GiB on each. Of "
        f"the {hardware.memory_gib:g} GiB of {hardware.name} the engine may take {gib(memory.allowed)} "
        f"({share}). Nothing is left for the KV cache: it does not start.",
        hardware.at("memory_gib"),
        "load",
        "certain" if counted else "likely",
        related=(serving.at("tensor_parallel_size"),),
        repair=Repair("manual", "more devices (--tensor-parallel-size), or smaller weights", ("engine_args",)),
        severity="warning" if counted else "note",
    )


def words(weights: Weights) -> str:
    return f"{gib(weights.size)} GiB" + ("" if weights.counted else " by the dimensions in its config")


def gib(size: int) -> str:
    return f"{size / GIB:.1f}"
