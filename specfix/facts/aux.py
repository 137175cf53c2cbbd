"""Which auxiliary hidden states the engine will hand to the draft."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specfix.deployment import Draft, Location, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known

# methods whose draft reads auxiliary hidden states of the target
AUX_METHODS = frozenset({"eagle3", "dflash", "dspark"})


@dataclass(frozen=True, slots=True)
class AuxPlan:
    """The layer ids that the engine will ask of the target, in its own numbering: i is the state that layer i reads,
    so that ``num_hidden_layers`` is the last layer's output. ``place`` is the draft's key that they come from, None
    where the engine guesses; ``ignored`` are keys that hold ids and that this release does not read."""

    ids: tuple[int, ...]
    place: str | None
    ignored: tuple[str, ...]


def aux_plan(target: Target, draft: Draft, method: str, engine: Engine, runner: str) -> AuxPlan:
    """From the first place that this release's runner reads and the draft fills, else the release's own guess."""
    if method not in AUX_METHODS:
        raise NotApplicable(f"{method} reads no auxiliary hidden states")
    places = known(engine.eagle.aux_places, f"where {engine} looks for aux layer ids").get(runner)
    stated = draft.aux_places()
    for key, shift in known(places, f"where the {runner} runner of {engine} looks for aux layer ids"):
        if key in stated:
            return AuxPlan(tuple(i + shift for i in stated[key].ids), key, ())
    return AuxPlan(default_ids(target, engine), None, tuple(stated))


def default_ids(target: Target, engine: Engine) -> tuple[int, ...]:
    """The ids that the release takes for this target where the draft names none."""
    formulas = known(engine.eagle.default_aux, f"the aux layers that {engine} takes by default")
    own = next((formulas[name] for name in target.architectures if name in formulas), formulas.get(""))
    layers = target.integer("num_hidden_layers")
    return tuple(evaluate(term, layers) for term in known(own, f"the aux layers that {engine} takes by default"))


def evaluate(term: str, layers: int) -> int:
    """Value of a term such as ``2``, ``L//2`` or ``L-3`` for ``layers`` = L."""
    match = re.fullmatch(r"(L)?(?:(//|-|\+))?(\d+)?", term)
    if not match or not term:
        raise MissingFact(f"the value of the default aux layer {term!r}")
    has_layers, operator, number = match.groups()
    value = int(number or 0)
    if not has_layers:
        return value
    if operator == "//":
        return layers // value
    return layers + (-value if operator == "-" else value)


def aux_location(draft: Draft, plan: AuxPlan) -> Location:
    """Where the ids of ``plan`` stand, or where they would."""
    if plan.place is None:
        return draft.at("eagle_aux_hidden_state_layer_ids")
    return draft.config.at(draft.aux_places()[plan.place].pointer)
