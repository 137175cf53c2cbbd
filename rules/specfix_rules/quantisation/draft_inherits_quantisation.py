"""QNT003: a plain draft is built with its quantised target's config."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Phase, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.quantisation import LINEARS, scheme_of, stated

METHODS = ("eagle", "eagle3", "dflash")


@rule(
    "QNT003",
    "draft-inherits-quantisation",
    severity="error",
    evidence=[
        "vllm-project/vllm#25883",
        "vllm-project/vllm#26590",
        "vllm-project/vllm#26328",
    ],
)
def draft_inherits_quantisation(
    target: Target, draft: Draft, engine: Engine, method: str, quant_origin: str | None = None
) -> Iterator[Finding]:
    """The draft is not quantised, and its layers are built with the target's quantisation."""
    if method not in METHODS or draft.config.file == target.config.file:
        raise NotApplicable("the draft is no head of its own on the target's states")
    if stated(draft, engine) is not None or stated(target, engine) is None:
        raise NotApplicable("the draft has a quantisation of its own, or the target has none")
    if known(quant_origin, f"whose quantisation {engine} builds the draft with") != "target":
        return
    target_scheme = known(scheme_of(target, engine), "the target's quantisation")
    if not target_scheme.everything:
        return
    layers = target.integer("num_hidden_layers")
    named = [f"model.layers.{layers}.mlp.{leaf}" for leaf in ("down_proj", "up_proj", "gate_proj")]
    named += [f"model.layers.{layers}.self_attn.{leaf}" for leaf in sorted(LINEARS & {"q_proj", "o_proj"})]
    built = [name for name in named if not target_scheme.spares_any(name, layers)]
    if not built:
        return
    phase: Phase = "load" if target_scheme.packed else "silent"
    outcome = (
        "it waits for packed weights, and loading the draft ends in a KeyError or a mismatch of shapes"
        if target_scheme.packed
        else "the draft has no scales for them, so that what is drafted is garbage, or loading fails"
    )
    yield Finding(
        f"The draft is not quantised, its target is ({target_scheme.method}), and {engine} builds the draft's layers "
        f"with the target's quantization_config: {outcome}.",
        draft.config.at("/quantization_config"),
        phase,
        "certain" if target_scheme.packed else "likely",
        related=(target.config.at(target_scheme.pointer),),
        repair=Repair(
            "manual",
            "take a release that builds the draft with its own quantisation, or a target that is not quantised",
        ),
    )
