"""HWR007: a backend for the draft that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.attention import own_backend


@rule(
    "HWR007",
    "draft-backend-ignored",
    severity="warning",
    evidence=["vllm-project/vllm#46770", "vllm/v1/worker/gpu/spec_decode/dflash/utils.py"],
)
def draft_backend_ignored(
    serving: Serving, engine: Engine, method: str, runner: str | None = None
) -> Iterator[Finding]:
    """attention_backend of the speculative config has no effect with this method and runner."""
    asked = serving.speculative.get("attention_backend")
    keys = engine.speculative.keys or {}
    if asked is None or "attention_backend" not in keys:
        raise NotApplicable("no backend is asked for the draft, or the release has no such key")
    if own_backend(engine, known(runner, f"which model runner {engine} chooses"), method):
        return
    yield Finding(
        f"attention_backend of the speculative config asks for {asked}, and the {runner} runner of {engine} does not "
        f"read it with {method}. The draft gets the backend that the engine picks or that the target was given. Where "
        "that one cannot do the draft's attention, the server does not start.",
        serving.at("speculative.attention_backend"),
        "load",
        "likely",
        repair=Repair(
            "manual",
            f"--attention-backend {asked}, which counts for the target too, or a release that reads the key",
            ("engine_args",),
        ),
    )
