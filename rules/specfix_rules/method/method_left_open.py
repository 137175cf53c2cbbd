"""MTH010: no method named, and the release guesses another one than the draft is for."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment, Draft
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts.method import Settled, inner_name, knows
from specfix.facts.speculative_config import Refusals


@rule(
    "MTH010",
    "method-left-open",
    severity="error",
    evidence=[
        "vllm-project/vllm#51338",
        "vllm-project/vllm#21737",
        "vllm/config/speculative.py: SpeculativeConfig.__post_init__",
    ],
)
def method_left_open(
    deployment: Deployment, draft: Draft, settled_method: Settled, engine: Engine, refusals: Refusals | None = None
) -> Iterator[Finding]:
    """The speculative config names no method, and the release takes another one than the draft is for."""
    if deployment.method_given or not deployment.config_given:
        raise NotApplicable("the method is named, or the command is still to be written")
    kind = inner_name(deployment.serving.method or "", engine)
    if kind in {settled_method.method, "draft_model"} or not knows(kind, engine):  # MTH007 speaks of what is not known
        return
    refused = any(misfit.option == "method" for misfit in deployment.serving.misfits)
    why = f"its path holds {settled_method.word!r}" if settled_method.word else "nothing in its path says otherwise"
    yield Finding(
        f"The speculative config names no method{f' that {engine} knows' if refused else ''}. The draft is made for "
        f"{kind}, but {engine} takes {settled_method.method}: {why}.",
        deployment.serving.at("speculative.method"),
        "config" if refusals is not None and refusals.of_others else "silent",
        "likely",
        related=(draft.at("architectures"),),
        repair=Repair("safe", f"say method {kind}", ("speculative_config",), (("speculative_config", "method", kind),)),
    )
