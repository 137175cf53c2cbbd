"""POS004: the MTP layers look for themselves in a list that ends with the target's own layers."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.deployment.model import mtp_layers
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.architecture import DraftClasses, first_known

KEY = "layer_types"


@rule(
    "POS004",
    "mtp-past-layer-types",
    severity="error",
    evidence=["vllm-project/vllm#49642", "vllm-project/vllm#40000"],
)
def mtp_past_layer_types(
    target: Target, draft: Draft, engine: Engine, draft_classes: DraftClasses | None = None
) -> Iterator[Finding]:
    """layer_types is shorter than the target's layers and the MTP layers together."""
    if not draft.is_part_of(target):
        raise NotApplicable("the draft's layers are numbered from 0")
    past = known(engine.layers.past_lists, f"how {engine} looks up the layers of built-in drafts")
    if not past:
        return
    built = first_known(known(draft_classes, f"the class that {engine} has for this draft").built, engine)
    if built not in past:
        return
    cutting = known(engine.layers.cut_lists, f"which config classes of {engine} cut layer_types")
    stated = draft.config.stated(KEY)
    if not stated or not stated[1]:
        return
    layers, count = draft.integer("num_hidden_layers"), mtp_layers(draft.config) or 1
    cut = draft.model_type in cutting
    kept = min(len(stated[1]), layers) if cut else len(stated[1])
    if kept >= layers + count:
        return
    shortened = f", of which {engine}'s config class keeps {kept}" if kept < len(stated[1]) else ""
    yield Finding(
        f"layer_types has {len(stated[1])} entries{shortened}. {engine}'s {built} numbers its {count} MTP layers on "
        f"from {layers} and looks each up in that list: IndexError, and the server does not start.",
        draft.config.at(stated[0]),
        "load",
        related=(draft.at("num_hidden_layers"),),
        repair=Repair(
            "manual",
            "serve without MTP, or take a release whose layers look no further than the list goes"
            if cut
            else f"give layer_types an entry for each MTP layer too, {layers + count} in all, as the model was made",
        ),
    )
