"""FTR002: default sampling parameters with which every request is refused."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving, Target
from specfix.engines import Engine
from specfix.errors import known
from specfix.facts.requests import default_sampling, neutral


@rule(
    "FTR002",
    "sampling-default-refused",
    severity="error",
    evidence=["vllm-project/vllm#42744", "unslothai/unsloth#10573", "vllm/sampling_params.py: _validate_spec_decode"],
)
def sampling_default_refused(target: Target, serving: Serving, engine: Engine, method: str) -> Iterator[Finding]:
    """A default of the model's generation config is refused together with speculation."""
    facts = engine.speculative.requests
    refused = known(facts.refused, f"which sampling parameters {engine} refuses with speculation")
    dropped = () if refused or not facts.drops_processors else ("min_p",)
    for name, value, location in default_sampling(target, serving, engine):
        if neutral(name, value) or name not in (*refused, *dropped):
            continue
        if serving.greedy and name in facts.greedy_resets:
            continue
        what = (
            "refuses each request that has it together with speculation (HTTP 400), also where the client never sent it"
            if name in refused
            else "does not apply it together with speculation, without a message: tokens are sampled that it rules out"
        )
        yield Finding(
            f"{name} {value} is a default of all requests, and {engine} {what}; {method} is asked for.",
            location,
            "runtime" if name in refused else "silent",
            related=(serving.at("generation_config"),),
            repair=Repair(
                "unsafe",
                "--generation-config vllm: the engine's own defaults, for temperature, top_k and top_p too; or an "
                f"--override-generation-config without {name}",
                ("engine_args",),
                (("engine_args", "generation_config", "vllm"), ("engine_args", "override_generation_config", None)),
            ),
        )
