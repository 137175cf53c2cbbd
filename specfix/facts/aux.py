"""Which auxiliary hidden states the engine will hand to the draft, and how many the draft is built for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from specfix.deployment import Draft, Location, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of, first_known
from specfix.facts.attention import is_mla
from specfix.record import record

# methods whose draft reads auxiliary hidden states of the target
AUX_METHODS = frozenset({"eagle3", "dflash", "dspark"})
TOP_LEVEL = "eagle_aux_hidden_state_layer_ids"
BLOCK = "eagle_config"
FLAG = "use_aux_hidden_state"  # of a draft's eagle_config or dflash_config


@record(frozen=True)
class AuxPlan:
    """The layer ids that the engine will ask of the target, in its own numbering: i is the state that layer i reads,
    so that ``num_hidden_layers`` is the last layer's output. ``place`` is the draft's key that they come from, None
    where the engine guesses; ``ignored`` are keys that hold ids and that this release does not read."""

    ids: tuple[int, ...]
    place: str | None
    ignored: tuple[str, ...]

    def location(self, draft: Draft) -> Location:
        """Where the ids stand, or where they would."""
        if self.place is None:
            return draft.at(TOP_LEVEL)
        stated = draft.aux_ids_at(self.place)
        return draft.config.at(stated.pointer) if stated else draft.at(TOP_LEVEL)

    def said(self, draft: Draft, engine: Engine) -> str:
        """Whose ids these are, and which, for a message; both numberings where the engine shifts them."""
        if self.place is None:
            return f"The draft names no aux layers that {engine} reads, so it takes {list(self.ids)}"
        found = draft.aux_ids_at(self.place)
        stated = list(found.ids) if found else []
        shifted = "" if stated == list(self.ids) else f", layers {list(self.ids)} in {engine}'s numbering"
        return f"The draft's {self.place} is {stated}{shifted}"


def aux_plan(target: Target, draft: Draft, method: str, engine: Engine, runners: tuple[str, ...]) -> AuxPlan:
    """The plan of the runner that is chosen; where that cannot be told, the plan on which both agree."""
    if method not in AUX_METHODS:
        raise NotApplicable(f"{method} reads no auxiliary hidden states")
    plans = {plan_of(runner, target, draft, engine) for runner in runners}
    if len(plans) > 1:
        raise MissingFact(f"which model runner {engine} chooses")
    return plans.pop()


def mismatch_phase(runners: tuple[str, ...]) -> Literal["warmup", "runtime"]:
    """When a wrong number of aux states is met: the V2 runner tries the draft while it warms up, the V1 runner does not
    before it drafts. Seen on vLLM 0.26.0 (H200, V2) and 0.22.1, 0.26.0, 0.32.0 (CPU, V1)."""
    return "warmup" if runners == ("V2",) else "runtime"


def plan_of(runner: str, target: Target, draft: Draft, engine: Engine) -> AuxPlan:
    """From the first place that this runner reads and the draft fills, else the release's own guess."""
    eagle = engine.eagle
    where = f"where the {runner} runner of {engine} looks for aux layer ids"
    places = known(known(eagle.aux_places, where).get(runner), where)
    if eagle.use_aux_flag.get(runner) and nested(draft, BLOCK).get(FLAG) is False:
        raise NotApplicable("the draft says that it reads no auxiliary hidden states")
    hidden = eagle.aux_hidden_by.get(runner, {})
    for key, shift in places:
        if key == TOP_LEVEL and ids_as_text(draft):  # it is no list to take, and keeps the others from being asked
            break
        stated = draft.aux_ids_at(key)
        if stated and not (key in hidden and nested(draft, hidden[key])):
            added = 0 if draft.model_type in eagle.aux_unshifted.get(key, ()) else shift
            return AuxPlan(tuple(i + added for i in stated.ids), key, ())
    return AuxPlan(default_ids(target, engine), None, tuple(draft.aux_places()))


def says_no_states(draft: Draft) -> bool:
    """Whether an EAGLE3 draft's class builds no ``fc``, since the config says that it reads no states. Classes with
    latent attention do not ask for that."""
    return nested(draft, BLOCK).get(FLAG) is False and not is_mla(draft)


def ids_as_text(draft: Draft) -> str | None:
    """The ids at the top level, where they are written as a text."""
    value = draft.config.value(TOP_LEVEL)
    return value if isinstance(value, str) and value else None


def nested(draft: Draft, key: str) -> Mapping[str, Any]:
    """The object under ``key`` of the draft's config; empty where there is none."""
    found = draft.config.find(key)
    return found[1] if found and isinstance(found[1], Mapping) else {}


def default_ids(target: Target, engine: Engine) -> tuple[int, ...]:
    """The ids that the release takes for this target where the draft names none."""
    what = f"the aux layers that {engine} takes by default"
    formulas = known(engine.eagle.default_aux, what)
    own = formulas.get(architecture_of(target, engine), formulas.get(""))
    layers = target.integer("num_hidden_layers")
    return tuple(evaluate(term, layers) for term in known(own, what))


def evaluate(term: str, layers: int) -> int:
    """Value of a term such as ``2``, ``L//2`` or ``L-3`` for ``layers`` = L."""
    match = re.fullmatch(r"(?:(L)(?:(//|-|\+)(?=\d))?)?(\d+)?", term)
    if not match or not term:
        raise MissingFact(f"the value of the default aux layer {term!r}")
    has_layers, operator, number = match.groups()
    value = int(number or 0)
    if not has_layers:
        return value
    if operator == "//":
        return layers // value
    return layers + (-value if operator == "-" else value)


def fc_states(draft: Draft, engine: Engine, built: Sequence[str] = ()) -> int:
    """How many aux states the release builds an EAGLE3 draft's ``fc`` for; ``built``: the classes that it makes of it,
    where that is known."""
    stated = draft.architectures or ("LlamaForCausalLM",)
    # vllm/transformers_utils/configs/eagle.py
    names = built or [n if n.startswith("Eagle3") or n.endswith("Eagle3") else f"Eagle3{n}" for n in stated]
    name = first_known(names, engine) or names[0]
    what = f"how many aux states {engine} builds {name} for"
    head = engine.eagle.heads.get(name)
    for source in known(engine.eagle.fc_states.get(name) or (head.fc_states if head else None) or None, what):
        if source.isdigit():
            return int(source)
        length = source.startswith("len(")
        value: Any = draft.config.values
        for key in source.removeprefix("len(").removesuffix(")").split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return len(value) if length else int(value)
    raise MissingFact(what)
