"""NUM010: more drafted tokens than the sampler of the V1 runner takes."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.budget import TOKENS


@rule(
    "NUM010",
    "more-than-sampled",
    severity="error",
    evidence=["vllm/v1/sample/rejection_sampler.py: RejectionSampler.forward, MAX_SPEC_LEN"],
    requires=["NUM001"],
)
def more_than_sampled(serving: Serving, engine: Engine, draft_tokens: int, runner: str) -> Iterator[Finding]:
    """A request may bring more drafted tokens than the sampler takes."""
    limit = known(engine.numbers.verified_at_most, f"how many drafted tokens {engine} verifies at once")
    if runner != "V1":
        raise NotApplicable("another runner has another sampler")
    if not limit or draft_tokens <= limit:
        return
    yield Finding(
        f"{draft_tokens} tokens are drafted for each request, and {engine}'s sampler asserts that they are {limit} at "
        "most: the engine dies of the first request that brings more.",
        serving.at(f"speculative.{TOKENS}"),
        "runtime",
        repair=Repair(
            "safe",
            f"num_speculative_tokens {limit}; what so long a draft brings is another question",
            ("speculative_config",),
            (("speculative_config", TOKENS, limit),),
        ),
    )
