"""FTR008: a default sampling parameter that no request may have."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving, Target
from specfix.engines import Engine
from specfix.facts.ranges import in_words, within
from specfix.facts.requests import default_sampling


@rule(
    "FTR008",
    "sampling-default-out-of-range",
    severity="error",
    evidence=["vllm/sampling_params.py: SamplingParams._verify_args"],
)
def sampling_default_out_of_range(target: Target, serving: Serving, engine: Engine) -> Iterator[Finding]:
    """A default of the model's generation config is outside of what the release takes."""
    ranges = engine.speculative.requests.ranges
    for name, value, location in default_sampling(target, serving, engine):
        bounds = ranges.get(name)
        if bounds is None or not isinstance(value, int | float) or within(bounds, value):
            continue
        if name == "temperature" and serving.greedy:
            continue  # all requests bring their own
        yield Finding(
            f"{name} {value} is a default of all requests, and {engine} takes one {in_words(bounds)}: each request "
            "that does not bring its own is refused (HTTP 400).",
            location,
            "runtime",
            related=(serving.at("generation_config"),),
            repair=Repair("manual", f"a {name} {in_words(bounds)}, or none"),
        )
