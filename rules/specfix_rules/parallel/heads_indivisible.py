"""PAR009: heads that the devices cannot share."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.errors import NotApplicable
from specfix.facts.parallel import DRAFT_TP, WITHOUT_DRAFT, draft_parallel_size

KEY = "num_attention_heads"


@rule(
    "PAR009",
    "heads-indivisible",
    severity="error",
    evidence=["vllm/config/model.py: verify_with_parallel_config"],
)
def heads_indivisible(draft: Draft, serving: Serving, method: str) -> Iterator[Finding]:
    """The draft's attention heads are no multiple of the devices that share it."""
    parts = draft_parallel_size(serving)
    if parts <= 1 or method in (*WITHOUT_DRAFT, "medusa", "mlp_speculator"):
        raise NotApplicable("no heads to share")
    heads = draft.integer(KEY)
    if heads % parts == 0:
        return
    option = DRAFT_TP if serving.speculative.get(DRAFT_TP) else "tensor_parallel_size"
    yield Finding(
        f"The draft has {heads} attention heads, and {parts} devices ({option}) are to share them: the engine "
        "refuses to "
        "start, since each must have as many.",
        draft.at(KEY),
        "config",
        related=(serving.at(f"speculative.{DRAFT_TP}" if option == DRAFT_TP else option),),
        repair=Repair(
            "manual", f"a --tensor-parallel-size that divides {heads} too, or another draft", ("engine_args",)
        ),
    )
