"""MTH011: no model runner is left for this deployment."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving, Target
from specfix.engines import Engine
from specfix.engines.runner import ENVIRONMENT, RunnerChoice


@rule(
    "MTH011",
    "runner-refused",
    severity="error",
    evidence=["vllm/config/vllm.py: use_v2_model_runner, _get_v1_model_runner_unsupported_features"],
    requires=["MTH003", "MTH007"],
)
def runner_refused(
    target: Target, serving: Serving, engine: Engine, hardware: Hardware, runner_choices: tuple[RunnerChoice, ...]
) -> Iterator[Finding]:
    """The model runner that the release chooses, or is made to take, does not support what the deployment asks for."""
    refusal = runner_choices[0].refusal  # the hardware is known: there is one
    if refusal is None:
        return
    forced = ENVIRONMENT in serving.env
    canvas = target.config.stated("canvas_length")
    yield Finding(
        f"{engine} does not start: {refusal}.",
        serving.at(ENVIRONMENT) if forced else target.at("canvas_length") if canvas else serving.at("method"),
        "config",
        repair=Repair("manual", f"leave {ENVIRONMENT} unset", ("env",))
        if forced
        else Repair("manual", "take hardware for which the other runner is chosen, or a release that supports it"),
    )
