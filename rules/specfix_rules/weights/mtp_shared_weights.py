"""WGT014: the MTP layer relies on the target's embeddings and head, and the release wants them in the layer."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.architecture import DraftClasses, first_known


@rule(
    "WGT014",
    "mtp-shared-weights",
    severity="error",
    evidence=["vllm-project/vllm#25993", "vllm/model_executor/models/glm4_moe_mtp.py"],
    requires=["WGT012"],
)
def mtp_shared_weights(
    target: Target, draft: Draft, serving: Serving, engine: Engine, method: str, draft_classes: DraftClasses
) -> Iterator[Finding]:
    """The checkpoint's MTP layer brings no embeddings and no head of its own, and the release refuses that."""
    if method != "mtp" or not draft.is_part_of(target):
        raise NotApplicable("the draft is no part of the target")
    own = engine.eagle.mtp_own.get(first_known(draft_classes.built, engine) or "", ())
    if not own:
        return
    if target.config.find("quantization_config") or serving.flag("quantization"):
        raise NotApplicable("of a quantised model the release does not check what is loaded")
    if target.tensors is None:
        raise MissingFact(f"a safetensors header of {target.reference}")
    layer = f"layers.{target.integer('num_hidden_layers')}."
    names = [name for name in target.tensors if layer in name]
    missing = [part for part in own if not any(part in name for name in names)]
    if not names or not missing:
        return
    yield Finding(
        f"The MTP layer of the checkpoint ({layer}*) has no {' and no '.join(missing)}, for which it relies on the "
        f"target's own: {engine} looks for them in the layer alone, and does not start without.",
        target.at("num_hidden_layers"),
        "load",
        repair=Repair("manual", "take a release that fills them from the target", ()),
    )
