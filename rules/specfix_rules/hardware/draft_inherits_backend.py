"""HWR006: an attention backend that is chosen for the target and cannot serve the draft."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Hardware, Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.attention import asked_backend, backend_values, is_mla, own_backend, place_of_asked, refusals


@rule(
    "HWR006",
    "draft-inherits-backend",
    severity="error",
    evidence=["vllm-project/vllm#39126", "vllm/v1/spec_decode: _create_draft_vllm_config"],
)
def draft_inherits_backend(
    target: Target,
    draft: Draft,
    serving: Serving,
    engine: Engine,
    method: str,
    hardware: Hardware | None = None,
    runner: str | None = None,
) -> Iterator[Finding]:
    """The draft gets the backend that was chosen for the target, which refuses it."""
    name = asked_backend(serving, engine)
    if name is None or draft.is_part_of(target):
        raise NotApplicable("no backend is chosen, or the draft is a part of the target")
    if hardware is not None and hardware.platform == "cpu":
        raise NotApplicable("the CPU platform takes its own backend")
    if own_backend(engine, known(runner, f"which model runner {engine} chooses"), method):
        return
    found = refusals(name, engine, backend_values(hardware, draft), mla=is_mla(draft))
    inherited = [reason for field, reason in found if field in {"mla", "head_sizes"}]
    if not inherited:
        return
    yield Finding(
        f"{name} is chosen for the target, and {engine} gives it to the draft as well. It {' and '.join(inherited)}: "
        "the draft's layers are refused (`is not valid for this configuration`), and the server does not start.",
        place_of_asked(serving),
        "load",
        related=(draft.at("architectures"),),
        repair=Repair(
            "manual",
            "leave the backend to the engine, or take a release whose draft chooses its own (its speculative config "
            "has attention_backend)",
            ("engine_args",),
        ),
    )
