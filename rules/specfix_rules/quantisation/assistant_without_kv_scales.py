"""QNT008: a Gemma 4 assistant that reads its target's FP8 cache without the scales."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.facts.quantisation import draft_class

ASSISTANT = "Gemma4MTPModel"
SCALES = ("k_scale", "v_scale", "kv_scale", "k_proj.output_scale", "v_proj.output_scale")


@rule(
    "QNT008",
    "assistant-without-kv-scales",
    severity="warning",
    evidence=["vllm-project/vllm#48666", "vllm-project/vllm#41789", "vllm/v1/spec_decode/gemma4.py"],
)
def assistant_without_kv_scales(
    target: Target,
    serving: Serving,
    engine: Engine,
    method: str,
    draft_classes: DraftClasses | None = None,
    runner: str | None = None,
) -> Iterator[Finding]:
    """The target's calibrated KV scales do not reach the assistant that reads its cache."""
    given = serving.kv_cache_dtype
    if method != "mtp" or not isinstance(given, str) or not given.startswith("fp8"):
        raise NotApplicable("no assistant with an FP8 KV cache")
    if draft_class(known(draft_classes, "the class that serves the draft"), engine) != ASSISTANT:
        raise NotApplicable("the draft is no Gemma 4 assistant")
    sharing = known(engine.quantisation.assistant_scales, f"whether {engine} hands KV scales to a Gemma 4 assistant")
    if known(runner, f"which model runner {engine} chooses") in sharing:
        return
    if target.tensors is None:
        raise MissingFact(f"safetensors headers of {target.reference}: whether it has calibrated KV scales")
    if not any(name.endswith(SCALES) for name in target.tensors):
        return  # all scales are 1, the assistant's too
    yield Finding(
        f"The target has KV scales of its own, and --kv-cache-dtype is {given}: in {engine}'s {runner} runner the "
        "assistant reads the target's FP8 cache with scales of 1, so that its attention is off and less is accepted.",
        serving.at("kv_cache_dtype"),
        "silent",
        "likely",
        repair=Repair(
            "unsafe",
            "keep the KV cache in the model's dtype; it takes twice the memory",
            ("engine_args",),
            (("engine_args", "kv-cache-dtype", "auto"),),
        ),
    )
