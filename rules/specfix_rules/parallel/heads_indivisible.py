"""PAR009: heads that the devices cannot share."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Location, Model, Serving, Target
from specfix.facts.parallel import DRAFT_TP, WITHOUT_DRAFT, draft_parallel_size

KEY = "num_attention_heads"


@rule(
    "PAR009",
    "heads-indivisible",
    severity="error",
    evidence=["vllm/config/model.py: verify_with_parallel_config"],
    requires=["MTH006"],
)
def heads_indivisible(target: Target, serving: Serving, method: str, draft: Draft | None = None) -> Iterator[Finding]:
    """The attention heads of the target, or of the draft, are no multiple of the devices that share it."""
    size = serving.tensor_parallel_size
    if size > 1 and (heads := target.integer(KEY)) % size:
        yield indivisible("target", target, heads, size, serving.at("tensor_parallel_size"))
        return  # another size is needed, and the draft's heads are for that one
    parts = draft_parallel_size(serving)
    if draft is None or parts <= 1 or method in (*WITHOUT_DRAFT, "medusa", "mlp_speculator"):
        return
    if (heads := draft.integer(KEY)) % parts:
        option = f"speculative.{DRAFT_TP}" if serving.speculative.get(DRAFT_TP) else "tensor_parallel_size"
        yield indivisible("draft", draft, heads, parts, serving.at(option))


def indivisible(side: str, model: Model, heads: int, parts: int, option: Location) -> Finding:
    return Finding(
        f"The {side} has {heads} attention heads, and {parts} devices are to share them: the engine refuses to start, "
        "since each must have as many.",
        model.at(KEY),
        "config",
        related=(option,),
        repair=Repair("manual", f"a --tensor-parallel-size that divides {heads}", ("engine_args",)),
    )
