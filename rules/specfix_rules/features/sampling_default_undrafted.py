"""FTR003: default sampling parameters with which nothing is drafted."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts.requests import default_sampling, neutral


@rule(
    "FTR003",
    "sampling-default-undrafted",
    severity="error",
    evidence=["vllm-project/vllm#34497", "vllm/v1/spec_decode/utils.py: is_spec_decode_unsupported"],
)
def sampling_default_undrafted(target: Target, serving: Serving, engine: Engine, method: str) -> Iterator[Finding]:
    """A default of the model's generation config turns drafting off for every request."""
    facts = engine.speculative.requests
    if method.strip("[]") not in facts.undrafted_methods:
        raise NotApplicable("the method drafts whatever a request asks for")
    for name, value, location in default_sampling(target, serving, engine):
        if neutral(name, value) or name not in facts.undrafted:
            continue
        yield Finding(
            f"{name} {value} is a default of all requests, and with {method} {engine} drafts nothing for a request "
            "that has it, without a message: speculation is off unless a client sends another value.",
            location,
            "silent",
            related=(serving.at("generation_config"),),
            repair=Repair(
                "unsafe",
                "--generation-config vllm: the engine's own defaults, for temperature, top_k and top_p too",
                ("engine_args",),
                (("engine_args", "generation_config", "vllm"), ("engine_args", "override_generation_config", None)),
            ),
        )
