"""KVC004: a release that does not speculate over recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known


@rule(
    "KVC004",
    "recurrent-refused",
    severity="error",
    evidence=["vllm-project/vllm#25752", "vllm/model_executor/layers/mamba/abstract.py: get_kv_cache_spec"],
)
def recurrent_refused(
    target: Target, serving: Serving, engine: Engine, method: str, recurrent: bool
) -> Iterator[Finding]:
    """This release speculates over no target with recurrent layers, or over few."""
    if not recurrent:
        raise NotApplicable("the target has no recurrent layers")
    facts = engine.blocks.recurrent
    if not known(facts.refuses, f"whether {engine} speculates over recurrent layers"):
        return
    model_type = target.config.values.get("model_type")
    if model_type in facts.exempt:
        return
    but = f" but for {', '.join(facts.exempt)}" if facts.exempt else ""
    yield Finding(
        f"Some layers of {model_type} keep a state instead of a KV cache, and {engine} refuses any speculation over "
        f"such layers{but}: `Mamba with speculative decoding is not supported yet`; {method} is asked for.",
        target.at("architectures"),
        "load",
        related=(serving.at("method"),),
        repair=Repair("manual", "take a release that speculates over recurrent layers, or serve without a draft"),
    )
