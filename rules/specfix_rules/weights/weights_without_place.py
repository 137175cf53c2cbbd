"""WGT008: the checkpoint holds tensors for which the release has no place."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.facts.quantisation import stated
from specfix.facts.weights import STATE_NORMS, DraftHead

AT_ODDS = Repair("manual", "take a release or a checkpoint in which the two are of one kind", ("draft_config",))


@rule(
    "WGT008",
    "weights-without-place",
    severity="error",
    evidence=["vllm-project/vllm#9580", "vllm-project/vllm#42764", "vllm/model_executor/models/utils.py"],
    requires=["WGT013"],
)
def weights_without_place(
    target: Target, draft: Draft, serving: Serving, engine: Engine, draft_head: DraftHead
) -> Iterator[Finding]:
    """A tensor of the draft's has a name that its class does not know."""
    strange = [name for name in draft_head.tensors if not draft_head.has_place(name)]
    asked = serving.flag("quantization") or serving.speculative.get("quantization")
    if asked is None and stated(draft, engine) is None and stated(target, engine) is None:
        strange += [name for name in draft_head.tensors if name.endswith("_proj.weight_scale")]
    if not strange:
        if passed := draft_head.passed_over():
            yield Finding(
                f"{engine} builds the draft as {draft_head.architecture} without a bias in {len(passed)} layers whose "
                f"weights have one ({draft_head.original[passed[0]]}): it is passed over, and less is accepted.",
                draft.at("attention_bias" if mendable(draft_head, passed) else "architectures"),
                "silent",
                "likely",
                repair=bias_stated(draft) if mendable(draft_head, passed) else AT_ODDS,
                severity="warning",
            )
        return
    names = sorted(draft_head.original[name] for name in strange)
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    mend, key = None, "architectures"
    if mendable(draft_head, strange):
        mend, key = bias_stated(draft), "attention_bias"
    elif STATE_NORMS in draft_head.built.keys and all(name.startswith(f"{STATE_NORMS}.") for name in strange):
        mend, key = (AT_ODDS if draft.speculators else switched_on(draft, STATE_NORMS, "such norms")), STATE_NORMS
    yield Finding(
        f"{engine} builds the draft as {draft_head.architecture}, which has no place for {shown}: a name that is not "
        "known ends the start.",
        draft.at(key),
        "load",
        repair=mend or AT_ODDS,
    )


def mendable(head: DraftHead, names: list[str]) -> bool:
    """Whether all are biases of attention, and its class asks the config whether it has any."""
    biases = all(".self_attn." in name and name.endswith("_proj.bias") for name in names)
    return head.built.qkv_bias == "attention_bias" and biases


def bias_stated(draft: Draft) -> Repair:
    return switched_on(draft, "attention_bias", "such biases")


def switched_on(draft: Draft, key: str, held: str) -> Repair:
    """The key set, since the weights have what it asks for."""
    change: Change = ("draft_config", draft.at(key).pointer, True)
    return Repair("safe", f"{key} true: the weights have {held}", ("draft_config",), (change,))
