"""FTR004: logits processors of the user's own."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known


@rule(
    "FTR004",
    "processors-refused",
    severity="error",
    evidence=["vllm-project/vllm#19482", "vllm/v1/sample/logits_processor: build_logitsprocs"],
)
def processors_refused(serving: Serving, engine: Engine, method: str) -> Iterator[Finding]:
    """--logits-processors is refused together with speculation."""
    given = serving.flag("logits_processors")
    if not given:
        raise NotApplicable("no logits processors are asked for")
    if not known(engine.speculative.requests.refuses_processors, f"what {engine} does with logits processors"):
        return
    yield Finding(
        f"--logits-processors names {given}, and {engine} refuses custom logits processors together with speculation "
        f"({method}): the server does not start.",
        serving.at("logits_processors"),
        "load",
        repair=Repair("manual", "serve without --logits-processors, or without a draft", ("engine_args",)),
    )
