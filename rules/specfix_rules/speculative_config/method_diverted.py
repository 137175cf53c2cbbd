"""CFG005: the release ends with another method than the one that is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment, Draft, Target
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts.method import MTP, Settled


@rule(
    "CFG005",
    "method-diverted",
    severity="error",
    evidence=["vllm-project/vllm#47490", "vllm/config/speculative.py: SpeculativeConfig.__post_init__"],
)
def method_diverted(
    deployment: Deployment, target: Target, draft: Draft, method: str, settled_method: Settled, engine: Engine
) -> Iterator[Finding]:
    """The draft's path, or its model_type, makes another method of the one that is asked for."""
    if not deployment.method_given:
        raise NotApplicable("the method is left to the release")
    ended, word = settled_method.method, settled_method.word
    if method == MTP and word is None:
        raise NotApplicable("whether a model has an MTP draft is another question")  # MTH006's
    if ended in {method, draft.kind}:  # another name of it, or the right one after all
        return
    serving = deployment.serving
    if word is not None:
        why = f"the draft's path {show(draft.served)} holds {word!r}"
        repair = Repair("manual", f"serve the draft from a path without {word!r}, parent folders included", ())
    else:
        why = f"the draft's model_type is {show(draft.model_type)}"
        repair = Repair("manual", f"give a draft for {method}, or ask for {ended}", ("speculative_config",))
    yield Finding(
        f"{method} is asked for, and {engine} serves {ended}: {why}.",
        serving.at("speculative.method"),
        "silent",
        related=(draft.at("model_type"),),
        repair=repair,
    )
