"""Choose a release's model runner for what is known of a deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from specfix.engines.conditions import Known, choose, holding
from specfix.engines.facts.decisions import RunnerFacts
from specfix.record import record

ENVIRONMENT: Final = "VLLM_USE_V2_MODEL_RUNNER"
VARIABLE: Final = f"envs.{ENVIRONMENT}"  # as the conditions call it

# What the conditions also ask for and no config states. All can be overridden by the caller's values.
ASSUMED: Final[Mapping[str, object]] = {
    "current_platform.is_unspecified()": False,  # it runs on a real platform
    "entry_points(group='vllm.logits_processors')": False,  # no plugin of this kind is installed
    "model_config.runner_type": "generate",
    "model_config.multimodal_config": None,
}


@record(frozen=True)
class RunnerChoice:
    """``runner`` is "V1", "V2", or None where it cannot be told; then ``needs`` names what it hangs on.

    ``unsupported``: features in use that keep the release from V2 or, where V2 is forced, make it refuse.
    ``refusal``: why the server will not start with this runner, None where nothing known speaks against it.
    """

    runner: str | None
    unsupported: tuple[str, ...] = ()
    refusal: str | None = None
    needs: tuple[str, ...] = ()


def choose_runner(facts: RunnerFacts, values: Mapping[str, object], *, cpu: bool = False) -> RunnerChoice:
    """The runner for ``values``: known values by the engine's own dotted names ("speculative_config.method").

    What is not given has the release's default where the config classes state one, and is unknown otherwise.
    A text for the environment variable is read as the engine reads it.
    """
    known = Known({**ASSUMED, **facts.defaults, **values})
    if isinstance(text := known.get(VARIABLE), str):
        # the engine makes a number of it, and dies of one that is none: what it chooses then is nobody's question
        known[VARIABLE] = text.strip().isdigit() and int(text) != 0
    sure, maybe, wanted = holding(facts.unsupported, known)
    features = tuple(_filled(step.then, known) for step in sure)
    if sure or not maybe:
        known["unsupported"] = bool(sure)
    chosen = choose(facts.steps, known)
    if cpu and facts.cpu == "V1" and chosen.then != "V2":
        return RunnerChoice("V1", features)
    if chosen.step is None:
        needs = set(chosen.needs) | (set(wanted) if "unsupported" in chosen.needs else set())
        return RunnerChoice(None, features, None, tuple(sorted(needs - {"unsupported"})))
    if cpu and facts.cpu is None:
        return RunnerChoice(None, features, None, ("whether the CPU worker has a V2 runner",))
    runner = "V1" if cpu and facts.cpu == "V1" else chosen.then
    refusal = None
    if runner == "refused":
        return RunnerChoice(None, features, "the V2 runner is needed and switched off")
    if chosen.then == "V2":
        if facts.forced_is_validated and features:
            refusal = f"the V2 runner does not support {', '.join(features)}"
        elif facts.v2_needs_triton and known.get("HAS_TRITON") is False:
            refusal = "the V2 runner needs Triton"
    elif runner == "V1":
        lacking = tuple(_filled(step.then, known) for step in holding(facts.v1_unsupported, known)[0])
        refusal = f"the V1 runner does not support {', '.join(lacking)}" if lacking else None
    return RunnerChoice(runner, features, refusal)


def _filled(feature: str, values: Mapping[str, object]) -> str:
    """The engine's name of a feature with the values of the names in braces."""
    for name, value in values.items():
        feature = feature.replace(f"{{{name}}}", str(value))
    return feature
