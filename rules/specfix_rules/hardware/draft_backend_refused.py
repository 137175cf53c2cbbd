"""HWR015: the draft's own attention backend refuses the draft."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Hardware, Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.attention import CHAINED, backend_values, draft_is_mla, latent_off, own_backend, refusals


@rule(
    "HWR015",
    "draft-backend-refused",
    severity="error",
    evidence=["vllm/v1/spec_decode: _create_draft_vllm_config", "vllm/v1/attention/backend.py: validate_configuration"],
)
def draft_backend_refused(
    target: Target,
    serving: Serving,
    hardware: Hardware,
    engine: Engine,
    method: str,
    draft: Draft | None = None,
    runner: str | None = None,
    served_dtype: str | None = None,
) -> Iterator[Finding]:
    """The attention backend that is asked for the draft does not take the draft on this machine."""
    name = serving.speculative.get("attention_backend")
    if not isinstance(name, str) or "attention_backend" not in (engine.speculative.keys or {}):
        raise NotApplicable("no backend is asked for the draft, or the release has no such key")
    if hardware.platform == "cpu" or method not in CHAINED:
        raise NotApplicable("the platform takes its own backend, or the draft is of another kind")
    if not own_backend(engine, known(runner, f"which model runner {engine} chooses"), method):
        return  # HWR007
    values = backend_values(hardware, target if draft is None else draft, served_dtype)
    latent = None if latent_off(serving) else draft_is_mla(target, method, draft)
    found = refusals(name.upper(), engine, values, mla=latent)
    if not found:
        return
    yield Finding(
        f"The draft's attention backend is {name}, which {' and '.join(reason for _, reason in found)}: {engine} "
        "refuses it once the target is loaded, and the server does not start.",
        serving.at("speculative.attention_backend"),
        "load",
        related=(hardware.at("compute_capability"),) if any(field == "capability" for field, _ in found) else (),
        repair=Repair("manual", "leave the draft's backend to the engine", ("speculative_config",)),
    )
