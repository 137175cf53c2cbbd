"""AUX006: the draft's aux layers are the usual ones of a target of another depth."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target

# What trainers take where nobody chooses, each by what is added to 0, to half of the layers and to all of them:
# EAGLE3 and vLLM (2, L//2, L-3); the same one lower, as SGLang and SpecForge count; SpecForge's templates for gpt-oss.
USUAL = ((2, 0, -3), (1, -1, -4), (1, -1, -3))


@rule(
    "AUX006",
    "aux-ids-of-another-depth",
    severity="warning",
    evidence=["vllm/model_executor/models/interfaces.py", "vllm-project/vllm#48113", "vllm-project/vllm#48259"],
    requires=["AUX003"],
)
def aux_ids_of_another_depth(target: Target, draft: Draft, method: str) -> Iterator[Finding]:
    """The aux layers are those that a trainer takes by default for a target of another depth."""
    stated = draft.aux_ids  # wherever they stand, and whether this release reads them there or not
    if method != "eagle3" or stated is None or len(stated.ids) != 3:
        return
    layers = target.integer("num_hidden_layers")
    made_for = depths(stated.ids)
    if not made_for or layers in made_for:
        return
    yield Finding(
        f"The draft names the layers {list(stated.ids)}, which are the usual ones for a target of "
        f"{' or '.join(map(str, sorted(made_for)))} layers, and this target has {layers}: it looks like another "
        "model's draft, of which next to nothing would be accepted.",
        draft.config.at(stated.pointer),
        "silent",
        "likely",
        related=(target.at("num_hidden_layers"),),
        repair=Repair("manual", "take the draft that was trained for this target", ("draft_config",)),
    )


def depths(ids: tuple[int, ...]) -> set[int]:
    """The numbers of layers for which ``ids`` are usual."""
    found = set()
    for low, middle, high in USUAL:
        layers = ids[2] - high
        if ids == (low, layers // 2 + middle, layers + high):
            found.add(layers)
    return found
