"""QNT007: an FP8 KV cache that the draft's layers are not told of."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.facts.quantisation import draft_class

HEADS = ("eagle", "eagle3")


@rule(
    "QNT007",
    "fp8-cache-not-told",
    severity="error",
    evidence=["vllm-project/vllm#21177", "vllm-project/vllm#24505", "vllm/model_executor/models/llama_eagle3.py"],
)
def fp8_cache_not_told(
    serving: Serving, engine: Engine, method: str, draft_classes: DraftClasses | None = None
) -> Iterator[Finding]:
    """The draft's attention takes an FP8 cache for one of the model's own dtype."""
    given = serving.kv_cache_dtype
    if method not in HEADS or not isinstance(given, str) or not given.startswith("fp8"):
        raise NotApplicable("no EAGLE head with an FP8 KV cache")
    name = draft_class(known(draft_classes, "the class that serves the draft"), engine)
    told = known(engine.quantisation.kv_cache_dtype, f"which drafts {engine} tells the dtype of the KV cache")
    if name not in (engine.quantisation.drafts or {}):
        raise MissingFact(f"whether {engine} tells {name} the dtype of the KV cache")
    if name in told:
        return
    yield Finding(
        f"--kv-cache-dtype is {given}, and {engine} makes the layers of {name} without the cache's config: they read "
        "and write FP8 blocks as if they held the model's own dtype, and the first request ends the engine with "
        "`query and key must have the same dtype`.",
        serving.at("kv_cache_dtype"),
        "runtime",
        repair=Repair(
            "unsafe",
            "keep the KV cache in the model's dtype; it takes twice the memory",
            ("engine_args",),
            (("engine_args", "kv-cache-dtype", "auto"),),
        ),
    )
