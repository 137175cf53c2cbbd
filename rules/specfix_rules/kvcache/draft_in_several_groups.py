"""KVC009: a draft model whose layers cannot share one KV cache group."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known


@rule(
    "KVC009",
    "draft-in-several-groups",
    severity="error",
    evidence=["vllm-project/vllm#49112", "vllm/v1/spec_decode: validate_same_kv_cache_group"],
)
def draft_in_several_groups(
    draft: Draft, serving: Serving, engine: Engine, method: str, runner: str, recurrent_draft: bool | None = None
) -> Iterator[Finding]:
    """The draft model has recurrent layers beside its attention, and the proposer takes one cache group only."""
    if method != "draft_model" or runner != "V1":
        raise NotApplicable("the proposer is not the V1 runner's for draft models")
    hybrid = known(recurrent_draft, f"whether the draft has layers that {engine} keeps a state for")
    if not hybrid or not known(engine.backends.draft.one_group, f"in how many groups {engine} takes a draft"):
        return
    yield Finding(
        f"Some layers of the draft {draft.reference} keep a state and some a KV cache. The two never share a cache "
        f"group, and the proposer of {engine} takes a draft of one group only: the start ends with `All drafting "
        "layers should belong to the same kv cache group`.",
        draft.at("architectures"),
        "warmup",
        related=(serving.at("method"),),
        repair=Repair("manual", "a draft model whose layers all have ordinary attention", ("speculative_config",)),
    )
