"""QNT004: a quantization_config that names no algorithm."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Surface
from specfix.deployment import Draft, Model, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, known
from specfix.facts.quantisation import algorithm_of, inner_of, stated, text_of


@rule(
    "QNT004",
    "no-quantisation-algorithm",
    severity="error",
    evidence=["vllm-project/vllm#24410", "vllm/config/model.py: _verify_quantization"],
)
def no_quantisation_algorithm(
    target: Target, engine: Engine, method: str, draft: Draft | None = None, quant_origin: str | None = None
) -> Iterator[Finding]:
    """ModelOpt's quantization_config has no quant_algo."""
    models: dict[str, tuple[Model, str]] = {target.config.file: (target, "target")}
    if draft is not None:
        models.setdefault(draft.config.file, (draft, "draft"))
    for model, side in models.values():
        found = stated(model, engine)
        if found is None or not found[1] or algorithm_of(found[1]) is not None:
            continue
        pointer, values, file = found
        named = text_of(values.get("quant_method")).lower()
        if named and side == "draft" and method != "draft_model" and quant_origin is None:
            raise MissingFact(f"whether {engine} reads the quantization_config of this draft")
        read = side == "target" or method == "draft_model" or quant_origin == "draft"
        if not named and inner_of(values.get("producer")).get("name") == "modelopt":
            if known(engine.quantisation.empty_method_is_none, f"what {engine} makes of no quant_method"):
                continue
            outcome = "refuses it with `Unknown quantization method`"
        elif named.startswith("modelopt") and read:
            if not known(engine.quantisation.null_algo_refused, f"what {engine} makes of no quant_algo"):
                continue
            outcome = "cannot tell what it means, and ends the start"
        else:
            continue
        whole = file is None and set(model.config.values) >= {pointer.lstrip("/")}
        surface: Surface = "target_config" if side == "target" else "draft_config"
        yield Finding(
            f"The {side}'s quantization_config is ModelOpt's and has no quant_algo, which says that nothing is "
            f"quantised. {engine} {outcome}.",
            model.config.at(pointer),
            "config",
            repair=Repair(
                "safe",
                f"set quantization_config to null in the {side}'s config.json: no weight is quantised",
                (surface,),
                ((surface, pointer, None),),
            )
            if whole and plain(model)
            else Repair("manual", f"take the quantization_config out of the {side}'s files"),
        )


def plain(model: Model) -> bool:
    """Whether the headers show floating point alone."""
    return model.tensors is not None and all(
        tensor.dtype in {"BF16", "F16", "F32", "F64", "I64", "BOOL"} for tensor in model.tensors.values()
    )
