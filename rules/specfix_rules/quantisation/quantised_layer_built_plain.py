"""QNT002: the checkpoint quantises a layer that the draft's class builds plain."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.facts.quantisation import FLOATS, SCALES, draft_class, in_mtp, stated


@rule(
    "QNT002",
    "quantised-layer-built-plain",
    severity="error",
    evidence=["vllm-project/vllm#35031", "vllm-project/vllm#28435", "vllm/model_executor/models: nn.Linear"],
)
def quantised_layer_built_plain(
    draft: Draft, engine: Engine, method: str, draft_classes: DraftClasses | None = None
) -> Iterator[Finding]:
    """The layer that joins hidden states is quantised, and is built plain."""
    if stated(draft, engine) is None:
        raise NotApplicable("the draft is not quantised")
    name = draft_class(known(draft_classes, "the class that serves the draft"), engine)
    joins = known(engine.quantisation.joins, f"how {engine} builds {name}").get(name, {})
    plain = {leaf for leaf, under in joins.items() if under is None}
    if not plain:
        raise NotApplicable(f"{engine} builds no layer of {name} plain whatever the checkpoint says")
    tensors = known(draft.tensors, f"safetensors headers of {draft.reference}")
    layers = draft.number("num_hidden_layers") if method == "mtp" else None
    for tensor_name, tensor in tensors.items():
        module, _, last = tensor_name.rpartition(".")
        quantised = last in SCALES or (last == "weight" and tensor.dtype not in FLOATS)
        leaf = module.rpartition(".")[2]
        own = method != "mtp" or in_mtp(tensor_name, layers)
        if quantised and leaf in plain and own:
            yield Finding(
                f"{tensor_name} is quantised ({tensor.dtype}), and {engine} builds {leaf} of {name} as a plain layer, "
                "which takes no scales and no packed weight: loading the draft fails.",
                draft.config.at("/quantization_config"),
                "load",
                repair=Repair(
                    "manual",
                    f"take a checkpoint with a plain {leaf} (it is small), or a release that builds it quantised: "
                    "`specfix engine` shows what each knows",
                ),
            )
            return
