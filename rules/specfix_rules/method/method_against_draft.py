"""MTH003: a method for another kind of draft."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment, Draft, Target
from specfix.deployment.kinds import decoder_layers, marked_kind, named_kind, tensor_kind
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts.architecture import DraftClasses
from specfix.facts.method import MTP, Settled

HEADS = frozenset({"eagle", "eagle3", "mtp", "dflash", "dspark", "medusa", "mlp_speculator"})
# kinds that a mark in the config alone makes sure of: no other kind of head has it
SURE_MARKS = frozenset({"dflash", "dspark", "medusa"})
# methods whose drafts are far from a model of their own, and from how many layers on a draft is certainly one
NO_FULL_MODEL = frozenset({"dspark", "medusa", "mlp_speculator"})
FULL_MODEL = 12
# a head of DeepSeek's MTP layout may be served as an EAGLE head too, and the other way round
ALIKE = frozenset({("mtp", "eagle"), ("eagle", "mtp")})


@rule(
    "MTH003",
    "method-against-draft",
    severity="error",
    evidence=[
        "vllm-project/vllm#21737",
        "vllm-project/vllm#51338",
        "vllm/config/speculative.py: SpeculativeConfig.__post_init__",
        "vllm/v1/spec_decode/llm_base_proposer.py: propose",
    ],
)
def method_against_draft(
    deployment: Deployment,
    target: Target,
    draft: Draft,
    method: str,
    settled_method: Settled,
    draft_classes: DraftClasses,
    engine: Engine,
) -> Iterator[Finding]:
    """The method is not the one that the draft was trained for."""
    if draft.is_part_of(target):
        raise NotApplicable("the draft is a part of the target")
    if deployment.method_given:  # else MTH010 says what becomes of it
        method = settled_method.method
    kind = sure_kind(draft, method)
    if kind is None or kind == method or method not in HEADS | {"draft_model"} or (kind, method) in ALIKE:
        return
    if kind == MTP and draft_classes.model_type not in (engine.mtp.model_types or ()):
        raise NotApplicable(f"{engine} knows no MTP draft of this type, and takes it for what it is told")
    if deployment.method_given and settled_method.word is not None:
        raise NotApplicable("the draft's path decides the method")  # CFG005 says so
    repair = None
    if kind in engine.methods.methods:
        repair = Repair(
            "safe",
            f"say method {kind}",
            ("speculative_config",),
            (("speculative_config", "method", kind),),
        )
    phase: Literal["config", "load", "silent"] = "load"
    if draft_classes.lacking(engine) or method == "mtp":
        phase, outcome = "config", "it does not start"
    elif (kind, method) == ("eagle3", "eagle"):
        phase, outcome = "silent", "the draft is fed other hidden states than those that it was trained on"
    elif kind == "dflash" and method == "draft_model":
        phase, outcome = "silent", "the draft runs without the target's hidden states, and nearly nothing is accepted"
    else:
        outcome = "the weights and what the draft is fed do not fit each other"
    yield Finding(
        f"The draft is made for {kind}, and {engine} serves it with {method}: {outcome}.",
        deployment.serving.at("speculative.method"),
        phase,
        "certain" if phase == "config" else "likely",
        related=(draft.at("architectures"),),
        repair=repair,
    )


def sure_kind(draft: Draft, method: str) -> str | None:
    """The kind that names in the config tell, or marks that no other kind has; None where a guess would be needed."""
    named = named_kind(draft.config)
    if named is not None:
        return named if named in HEADS else None
    marked = marked_kind(draft.config)
    # a key alone does not keep a whole model from being served as one: its class reads no such key
    if marked in SURE_MARKS and (method != "draft_model" or not whole(draft)):
        return marked
    if method in NO_FULL_MODEL and draft.kind == "draft_model" and marked is None:
        layers = decoder_layers(draft.config, draft.tensors)
        return "draft_model" if layers is not None and layers >= FULL_MODEL else None
    tensors = tensor_kind(draft.tensors)  # fc.weight says that it is a head, and not of which EAGLE
    return tensors if method == "draft_model" else None


def whole(draft: Draft) -> bool:
    """Whether the tensors are those of a model of its own: it embeds tokens, and joins no hidden states."""
    names = {name.rpartition(".")[0].rpartition(".")[2] for name in draft.tensors or ()}
    return "embed_tokens" in names and "fc" not in names and tensor_kind(draft.tensors) is None
