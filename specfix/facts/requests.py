"""Sampling parameters that requests have where clients do not send them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from specfix.deployment import Location, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known

# values with which a parameter does nothing
NEUTRAL: Mapping[str, float] = {
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


def neutral(name: str, value: Any) -> bool:
    """Whether this value of a parameter changes nothing; one of another type is refused or ignored elsewhere."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    return name in NEUTRAL and abs(value) < 2 and round(value - NEUTRAL[name], 5) == 0  # as near as the engine asks


def default_sampling(target: Target, serving: Serving, engine: Engine) -> Iterator[tuple[str, Any, Location]]:
    """(name, value, place) of each default: of --override-generation-config, else of the model's
    generation_config.json, unless the engine's own defaults are asked for."""
    names = known(engine.speculative.requests.defaults, f"which defaults {engine} takes from a generation config")
    overriding = serving.flag("override_generation_config")
    if isinstance(overriding, str):
        try:
            overriding = json.loads(overriding)
        except (ValueError, RecursionError):
            overriding = None
    given = overriding if isinstance(overriding, Mapping) else {}
    for name in names:
        if given.get(name) is not None:
            yield name, given[name], serving.at("override_generation_config")
    source = serving.flag("generation_config")
    if source == "vllm":
        if not given:
            raise NotApplicable("requests have the engine's own defaults")
        return
    if source is not None and source != "auto":
        raise MissingFact(f"the generation config in {source}")
    config = target.generation_config
    if config is None:
        if target.folder is None and not given:
            raise MissingFact(f"generation_config.json of {target.reference}")
        return
    for name in names:
        if name not in given and config.values.get(name) is not None:
            yield name, config.values[name], config.at(f"/{name}")
