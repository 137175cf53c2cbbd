"""AUX001: the draft does not say which layers of the target it reads."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft
from specfix.deployment.json_text import show
from specfix.deployment.model import AuxIds
from specfix.engines import Engine
from specfix.facts.aux import TOP_LEVEL, AuxPlan, ids_as_text


@rule(
    "AUX001",
    "aux-ids-not-read",
    severity="note",
    evidence=["vllm-project/vllm#50170", "vllm-project/vllm#25961"],
)
def aux_ids_missing(draft: Draft, engine: Engine, method: str, aux_plan: AuxPlan) -> Iterator[Finding]:
    """The engine guesses the layers whose hidden states the draft reads."""
    if aux_plan.place is not None:
        return
    guess = list(aux_plan.ids)
    read = any(key == TOP_LEVEL for places in (engine.eagle.aux_places or {}).values() for key, _ in places or ())
    elsewhere = Repair("manual", f"take a release that reads {TOP_LEVEL}: this one reads no ids", ("draft_config",))
    if text := ids_as_text(draft):
        yield Finding(
            f"The draft's {TOP_LEVEL} is the text {show(text)}, and no list, so that {engine} passes over it: it takes "
            f"{guess}.",
            draft.at(TOP_LEVEL),
            "silent",
            "likely",
            severity="warning",
            repair=Repair("manual", "write the ids as a list of numbers", ("draft_config",)),
        )
        return
    if not aux_plan.ignored:
        # EAGLE3's own trainer has these layers for its default; the other methods' heads are trained on their own
        usual = method == "eagle3"
        right = "one that was trained with EAGLE3's default layers" if usual else "hardly any"
        yield Finding(
            f"The draft names no aux layers, so {engine} takes {guess}. Of {method} heads that is right for {right}.",
            draft.at(TOP_LEVEL),
            "silent",
            "certain" if usual else "likely",
            severity=None if usual else "warning",
            repair=Repair("manual", f"if the trainer used other layers, write them as {TOP_LEVEL}", ("draft_config",))
            if read
            else elsewhere,
        )
        return
    for place in aux_plan.ignored:
        stated = draft.aux_places()[place]
        # trainers that follow SGLang number each layer one lower than vLLM does
        if aux_plan.ids in (stated.ids, tuple(i + 1 for i in stated.ids)):
            continue
        yield Finding(
            f"The draft names its aux layers in {place} ({list(stated.ids)}), where {engine} does not look: it takes "
            f"{guess} instead, and drafts from other layers than the head was trained on.",
            draft.config.at(stated.pointer),
            "silent",
            "likely",  # how much acceptance the wrong layers cost is not in any config
            repair=Repair(
                "unsafe",
                f"write {layers(place, stated)} as {TOP_LEVEL} at the top level, if the trainer counted as vLLM does "
                "(one that follows SGLang counts from one lower: each id plus one)",
                ("draft_config",),
                (("draft_config", f"/{TOP_LEVEL}", layers(place, stated)),),
            )
            if read
            else elsewhere,
            severity="warning",
        )


def layers(place: str, stated: AuxIds) -> list[int]:
    """The ids in vLLM's numbering: the layers that ``target_layer_ids`` lists count from one lower."""
    return [i + place.endswith("target_layer_ids") for i in stated.ids]
