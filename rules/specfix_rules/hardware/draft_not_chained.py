"""HWR010: attention with which a draft may propose one token and no second one."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Hardware, Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.attention import CHAINED, draft_is_mla


@rule(
    "HWR010",
    "draft-not-chained",
    severity="error",
    evidence=["vllm-project/vllm#28222", "vllm/v1/spec_decode/eagle.py: allowed_attn_types"],
)
def draft_not_chained(
    target: Target,
    serving: Serving,
    hardware: Hardware,
    engine: Engine,
    method: str,
    runner: str,
    draft: Draft | None = None,
) -> Iterator[Finding]:
    """On this platform the proposer refuses a second token with multi-head latent attention."""
    if method not in CHAINED or runner != "V1" or not draft_is_mla(target, method, draft):
        raise NotApplicable("the draft has ordinary attention, or drafts all tokens at once")
    taken = engine.backends.draft.chained.get(hardware.platform, ())
    if not taken or any("MLA" in name for name in taken):
        return
    if known(serving.num_speculative_tokens, "num_speculative_tokens") < 2:
        return
    yield Finding(
        f"The draft has multi-head latent attention, and the proposer of {engine} drafts more than one token only with "
        f"{', '.join(taken)}: the first request that is drafted for ends the engine (`Unsupported attention metadata "
        "type`, or an AssertionError).",
        serving.at("speculative.num_speculative_tokens"),
        "runtime",
        related=(hardware.at("platform"),),
        repair=Repair(
            "safe",
            "num_speculative_tokens of 1",
            ("speculative_config",),
            (("speculative_config", "num_speculative_tokens", 1),),
        ),
    )
