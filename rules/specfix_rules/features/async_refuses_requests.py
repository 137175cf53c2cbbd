"""FTR006: asynchronous scheduling that refuses some requests together with speculation."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known

WORDS = {
    "frequency_penalty": "penalties",
    "presence_penalty": "penalties",
    "repetition_penalty": "penalties",
    "bad_words_token_ids": "bad words",
    "structured_outputs": "structured outputs",
}


@rule(
    "FTR006",
    "async-refuses-requests",
    severity="warning",
    evidence=["vllm-project/vllm#29821", "vllm/v1/engine/input_processor.py"],
)
def async_refuses_requests(serving: Serving, engine: Engine, method: str) -> Iterator[Finding]:
    """With asynchronous scheduling and speculation this release refuses requests with some parameters."""
    asked = serving.flag("async_scheduling")
    if not asked:
        raise NotApplicable("asynchronous scheduling is not asked for")
    if asked is not True:
        raise MissingFact(f"whether --async-scheduling {asked} turns it on")
    known(engine.speculative.requests.refused, f"which requests {engine} refuses")
    refused = engine.speculative.requests.async_refused
    if not refused:
        return
    kinds = ", ".join(dict.fromkeys(WORDS.get(name, name) for name in refused))
    yield Finding(
        f"With --async-scheduling and {method}, {engine} refuses each request that asks for any of: {kinds}.",
        serving.at("async_scheduling"),
        "runtime",
        repair=Repair(
            "unsafe",
            "no --async-scheduling: somewhat slower, and nothing is refused",
            ("engine_args",),
            (("engine_args", "async_scheduling", None),),
        ),
    )
