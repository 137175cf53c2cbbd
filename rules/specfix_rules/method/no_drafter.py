"""MTH007: a method that the model runner cannot draft with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.engines.conditions import holding
from specfix.engines.facts.decisions import Step
from specfix.engines.runner import ENVIRONMENT
from specfix.errors import MissingFact, known
from specfix.facts.method import among, knows
from specfix.facts.speculative_config import Refusals

CONFIG = "speculative_config"


@rule(
    "MTH007",
    "no-drafter",
    severity="error",
    evidence=[
        "vllm-project/vllm#24322",
        "vllm/v1/worker/gpu_model_runner.py: Unknown speculative decoding method",
        "vllm/v1/worker/gpu/spec_decode/__init__.py: init_speculator",
        "vllm/config/vllm.py: _get_v1_model_runner_unsupported_features",
    ],
    requires=["MTH003", "MTH009"],
)
def no_drafter(
    serving: Serving, method: str, runners: tuple[str, ...], engine: Engine, refusals: Refusals | None = None
) -> Iterator[Finding]:
    """The model runner has no drafter for the method, or refuses it."""
    drafters = known(engine.methods.drafters, f"the methods that {engine} has a drafter for")
    lacking = [one for one in runners if one in drafters and not among(method, drafters[one], engine)]
    forced = serving.env.get(ENVIRONMENT)
    unset = (
        Repair("safe", f"leave {ENVIRONMENT} unset", ("env",), (("env", ENVIRONMENT, None),))
        if forced is not None
        else None
    )
    other = Repair("manual", "take another method, or a release that has it", ("speculative_config",))
    if not knows(method, engine):
        yield Finding(
            f"{engine} knows no method {method}: it does not start.",
            serving.at("speculative.method"),
            "config",
            repair=other,
        )
        return
    if lacking == list(runners):
        early = refusals is not None and bool(refusals.of_others)
        stops = "does not start" if early else "stops when it starts its workers"
        yield Finding(
            f"{engine} knows the method {method}, but has no drafter for it in its {' or its '.join(runners)} model "
            f"runner: the server {stops}.",
            serving.at("speculative.method"),
            "config" if early else "load",
            repair=unset or other,
        )
        return
    known_values = {CONFIG: True, f"{CONFIG}.method": method, **given(serving)}
    if len(runners) > 1:
        if lacking or holding(own(engine.runner.v1_unsupported), known_values)[0]:
            raise MissingFact(f"which model runner {engine} chooses")
        return
    steps = engine.runner.v1_unsupported if runners == ("V1",) else ()
    if runners == ("V2",) and forced is not None and engine.runner.forced_is_validated:
        steps = engine.runner.unsupported
    for step in holding(own(steps), known_values)[0]:
        feature = str(step.then).replace(f"{{{CONFIG}.method}}", method)
        yield Finding(
            f"The {runners[0]} model runner of {engine} does not support {feature}: the server does not start.",
            serving.at("speculative.method"),
            "config",
            related=(serving.at(ENVIRONMENT),) if forced is not None else (),
            repair=unset
            or Repair("manual", "take another method, or hardware for which the other runner is chosen", ("env",)),
        )


def own(steps: tuple[Step, ...]) -> list[Step]:
    """The features that hang on the speculative config alone."""
    return [step for step in steps if step.blocks <= {CONFIG}]


def given(serving: Serving) -> dict[str, Any]:
    return {f"{CONFIG}.{key}": value for key, value in serving.speculative.items()}
