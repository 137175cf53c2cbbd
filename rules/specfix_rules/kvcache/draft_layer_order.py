"""KVC003: draft layers whose order differs from process to process."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts.layers import proposer_file


@rule("KVC003", "draft-layer-order", severity="warning", evidence=["vllm/v1/spec_decode: initialize_attn_backend"])
def draft_layer_order(
    draft: Draft, engine: Engine, method: str, runner: str, layer_kinds: tuple[str, ...]
) -> Iterator[Finding]:
    """The draft's layers are of several kinds and are taken in an order that differs between processes."""
    if runner != "V1":
        raise NotApplicable("the proposer is the V1 runner's")
    if len(layer_kinds) < 2:
        return
    file = proposer_file(engine, draft, method)
    if engine.layers.iteration[file] == "sorted":
        return
    yield Finding(
        f"The draft's layers are of {len(layer_kinds)} kinds ({', '.join(layer_kinds)}), and {engine} ({file}) takes "
        "them from a set, in an order that differs between processes. The first one decides the block size of all, "
        "so two starts of one server, or two ranks of one start, may draft differently.",
        draft.at("layer_types"),
        "silent",
        "likely",
        repair=Repair(
            "safe",
            "a shim takes the layers in sorted order; so does every process with one PYTHONHASHSEED, in some order",
            ("shim",),
            (("shim", "sorted_draft_layers", {}),),
        ),
    )
