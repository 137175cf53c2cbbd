"""WGT008: the checkpoint holds tensors for which the release has no place."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Draft
from specfix.engines import Engine
from specfix.facts.weights import DraftHead


@rule(
    "WGT008",
    "weights-without-place",
    severity="error",
    evidence=["vllm-project/vllm#9580", "vllm-project/vllm#42764", "vllm/model_executor/models/utils.py"],
    requires=["WGT013"],
)
def weights_without_place(draft: Draft, engine: Engine, draft_head: DraftHead) -> Iterator[Finding]:
    """A tensor of the draft's has a name that its class does not know."""
    strange = [name for name in draft_head.tensors if not draft_head.has_place(name)]
    if not strange:
        return
    names = sorted(draft_head.original[name] for name in strange)
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    biased = [name for name in strange if name.endswith("_proj.bias")]
    mend = None
    if len(biased) == len(strange) and draft_head.built.qkv_bias == "attention_bias":
        key = "attention_bias"
        change: Change = ("draft_config", draft.at(key).pointer, True)
        mend = Repair("safe", f"{key} true: the weights have such biases", ("draft_config",), (change,))
    yield Finding(
        f"{engine} builds the draft as {draft_head.architecture}, which has no place for {shown}: a name that is not "
        "known ends the start.",
        draft.at("attention_bias" if mend else "architectures"),
        "load",
        repair=mend
        or Repair("manual", "take a release or a checkpoint in which the two are of one kind", ("draft_config",)),
    )
