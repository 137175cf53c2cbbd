"""KVC010: a KV connector whose step ends before the draft has run."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known

# methods whose draft has a KV cache of its own
CACHING_METHODS = frozenset({"eagle", "eagle3", "mtp", "dflash", "draft_model"})


@rule(
    "KVC010",
    "connector-before-draft",
    severity="warning",
    evidence=["vllm-project/vllm#34529", "vllm/v1/worker/kv_connector_model_runner_mixin.py"],
)
def connector_before_draft(serving: Serving, engine: Engine, method: str, runner: str) -> Iterator[Finding]:
    """The connector saves the target's KV cache and not the draft's."""
    config = serving.flag("kv_transfer_config")
    if not config or method not in CACHING_METHODS:
        raise NotApplicable("no KV connector, or no KV cache of the draft's own")
    if runner != "V1":
        raise NotApplicable("the connector's step is ended by another runner")
    role = config.get("kv_role") if isinstance(config, dict) else None
    if role == "kv_consumer":
        raise NotApplicable("this server saves nothing")
    if known(engine.backends.draft.connector_waits, f"when {engine} ends the step of a KV connector"):
        return
    yield Finding(
        f"{engine} ends the step of a KV connector, and clears what it knows of the requests, before the {method} "
        "draft has run: what the draft writes into its KV cache is not saved. Whoever loads these prompts drafts over "
        "a cache that was never filled, and accepts little of it.",
        serving.at("kv_transfer_config"),
        "silent",
        "likely",
        related=(serving.at("method"),),
        repair=Repair("manual", "a release whose connector waits for the draft", ("engine_args",)),
    )
