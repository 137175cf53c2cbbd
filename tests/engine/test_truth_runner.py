"""The runner that specfix expects, against the one that real configs of the engine choose.

What a CPU build changes in the config before the runner is chosen (dual batch overlap is switched off) is not asked.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from specfix.deployment import Deployment, Serving
from specfix.deployment.load import load_deployment
from specfix.engines.runner import ENVIRONMENT, RunnerChoice, choose_runner
from specfix.facts.method import method
from specfix.facts.runner import engine_values, runner_choices, runners

from .chosen import releases
from .truth import GATE, VERSIONS, ask, read

pytestmark = pytest.mark.engine

CASES = 50
# Arguments of the engine that a deployment has no names for, by the config that holds them
HOLDERS = {
    "async_scheduling": "scheduler_config",
    "enable_prefix_caching": "cache_config",
    "enable_prompt_embeds": "model_config",
    "enable_return_routed_experts": "model_config",
    "kv_sharing_fast_prefill": "cache_config",
    "logits_processors": "model_config",
    "model_impl": "model_config",
}
# how the engine begins to say that it has no such runner for the config
REFUSALS = ("does not yet support: ", "Runner V1 does not support: ")
NO_TRITON = "requires Triton"


@pytest.mark.parametrize("version", releases(VERSIONS, *GATE))
def test_the_runner_of_real_configs(version: str, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    wrong = []
    decided: dict[str, set[str]] = {}
    for number, case in enumerate(ask(version, "runner")["cases"]):
        deployment = load(case, tmp_path / str(number))
        verdict = compare(case, choice(version, deployment, case))
        if case["said"] and not case["flags"]:  # all of it is said of the deployment: by the way that rules go
            parts = deployment.target, deployment.serving, method(deployment.serving, read(version))
            found = runners(
                runner_choices(*parts, read(version), deployment.hardware, case["triton"], deployment.draft)
            )
            verdict = verdict if found in {(case["said"],), ("V1", "V2")} else "wrong"
        counts[verdict] += 1
        if case["said"]:
            decided.setdefault(case["said"], set()).add(case["name"])
        if verdict == "wrong":
            wrong.append({key: case[key] for key in ("name", "env", "triton", "said", "error")})
    named = set().union(*decided.values())
    print(f"\n{version}: {len(named)} pairs, {sum(counts.values())} configs:", dict(counts))
    assert not wrong
    assert len(named) >= CASES and set(decided) == {"V1", "V2"}
    assert counts["cannot tell"] <= 0.03 * sum(counts.values())


def load(case: dict[str, Any], folder: Path) -> Deployment:
    """The deployment of the folders that the engine was given."""
    paths = []
    for side in ("target", "draft"):
        if case[side]:
            (folder / side).mkdir(parents=True)
            (folder / side / "config.json").write_text(json.dumps(case[side]))
            paths.append(str(folder / side))
    env = {ENVIRONMENT: case["env"]} if case["env"] else {}
    serving = Serving(**case["serve"], num_speculative_tokens=3, env=env)
    return load_deployment(paths[0], paths[1] if case["draft"] else None, serving, "h200")


def choice(version: str, deployment: Deployment, case: dict[str, Any]) -> RunnerChoice:
    engine, serving = read(version), deployment.serving
    values = engine_values(
        deployment.target,
        serving,
        method(serving, engine),
        engine,
        deployment.hardware,
        case["triton"],
        deployment.draft,
    )
    for name, value in case["flags"].items():
        if isinstance(value, dict):
            values |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            values[f"{HOLDERS[name]}.{name}"] = value
    return choose_runner(engine.runner, values)


def compare(case: dict[str, Any], expected: RunnerChoice) -> str:
    """ "same", "wrong", "cannot tell", or why the engine's answer says nothing of the runner."""
    refusal, error = expected.refusal or "", case["error"] or ""
    if case["said"]:
        if expected.runner is None and not refusal:
            return "cannot tell"
        return "same" if expected.runner == case["said"] and not refusal else "wrong"
    if NO_TRITON in error:
        return "same refusal" if "Triton" in refusal else "wrong"
    features = next((error.split(start)[1].split(" [type=")[0] for start in REFUSALS if start in error), None)
    if features is None:
        return "other error"  # before or after the runner is looked at
    return "same refusal" if features in refusal else "wrong"
