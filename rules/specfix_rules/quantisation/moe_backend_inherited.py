"""QNT009: the target's --moe-backend takes no plain experts, and the draft's experts are plain."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.quantisation import MtpTensors, Scheme


@rule(
    "QNT009",
    "moe-backend-inherited",
    severity="error",
    requires=["QNT001"],
    evidence=["vllm-project/vllm#54788", "vllm/model_executor/layers/fused_moe/oracle/unquantized.py"],
)
def moe_backend_inherited(
    serving: Serving,
    engine: Engine,
    mtp_scheme: Scheme | None = None,
    mtp_tensors: MtpTensors | None = None,
    runner: str | None = None,
) -> Iterator[Finding]:
    """The draft's plain experts get a MoE backend that is for quantised ones."""
    given = serving.flags.get("moe_backend")
    if not isinstance(given, str) or given.lower().replace("-", "_") == "auto":
        raise NotApplicable("no MoE backend is asked for")
    if mtp_scheme is None:
        raise NotApplicable("the draft is not within a quantised checkpoint")
    tensors = known(mtp_tensors, "safetensors headers of the target")
    chosen = known(runner, f"which model runner {engine} chooses")
    facts = engine.quantisation
    heeded = known(facts.draft_moe_backend, f"whether {engine} heeds the speculative config's moe_backend")
    own = serving.speculative.get("moe_backend")
    name = own if isinstance(own, str) and chosen in heeded else given
    taken = known(facts.unquantised_moe, f"the MoE backends that {engine} has for plain experts")
    experts = [module for module in tensors.plain if ".experts" in module]
    quantised = [module for module in tensors.quantised if ".experts" in module]
    if not taken or name.lower().replace("-", "_") in {*taken, "auto"} or not experts or quantised:
        return
    ignored = f" (its own {own!r} is not heeded by the {chosen} runner)" if isinstance(own, str) and name != own else ""
    fitting = chosen in heeded
    yield Finding(
        f"--moe-backend is {given}, and the MTP layers' experts are plain ({experts[0]}): {engine} gives them the same "
        f"backend{ignored}, which it has for quantised experts alone. The draft does not load.",
        serving.at("moe_backend"),
        "load",
        related=(serving.at("speculative.moe_backend"),) if own is not None else (),
        repair=Repair(
            "safe",
            "let the release choose the draft's MoE backend",
            ("speculative_config",),
            (("speculative_config", "moe_backend", "auto"),),
        )
        if fitting
        else Repair(
            "unsafe",
            "let the release choose the MoE backend of target and draft",
            ("engine_args",),
            (("engine_args", "moe-backend", "auto"),),
        ),
    )
