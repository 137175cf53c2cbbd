"""QNT006: a DFlash2 draft in float16."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Hardware, Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.facts.quantisation import draft_class
from specfix.facts.served_dtype import machine_dtypes

FRAGILE = "DFlash2"


@rule(
    "QNT006",
    "half-precision-dflash2",
    severity="error",
    evidence=["vllm-project/vllm#55250", "vllm-project/vllm#55294"],
)
def half_precision_dflash2(
    target: Target,
    draft: Draft,
    serving: Serving,
    method: str,
    engine: Engine,
    draft_classes: DraftClasses | None = None,
    served_dtype: str | None = None,
    hardware: Hardware | None = None,
) -> Iterator[Finding]:
    """A DFlash2 draft overflows in float16."""
    if method != "dflash":
        raise NotApplicable(f"a {method} draft is no {FRAGILE} draft")
    name = draft_class(known(draft_classes, "the class that serves the draft"), engine)
    if not name.startswith(FRAGILE) or name not in engine.methods.architectures:
        raise NotApplicable(f"{name} is no {FRAGILE} draft that {engine} knows")
    guarded = known(engine.quantisation.half_guarded, f"what {engine} does about float16 in {name}")
    if known(served_dtype, "the dtype that the target is served in") != "float16" or name in guarded:
        return
    asked = serving.dtype not in (None, "auto")
    has_bfloat16 = hardware is not None and "bfloat16" in machine_dtypes(hardware, engine)
    yield Finding(
        f"The target is served in float16, and {engine} casts its draft to the same: the residual stream of a "
        f"{FRAGILE} draft overflows there, and nothing that it drafts is accepted.",
        serving.at("dtype") if asked else target.at("dtype"),
        "silent",
        related=(draft.at("architectures"),),
        repair=Repair("unsafe", "serve in bfloat16", ("engine_args",), (("engine_args", "dtype", "bfloat16"),))
        if has_bfloat16
        else Repair("manual", "take another draft where the machine has no bfloat16"),
    )
