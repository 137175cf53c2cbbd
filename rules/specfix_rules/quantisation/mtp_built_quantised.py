"""QNT001: the checkpoint's MTP layers are not quantised, and its config does not say so."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Phase, Repair, rule
from specfix.deployment import Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.facts.quantisation import LINEARS, MtpTensors, Scheme, by_pattern, draft_class, sparing_changes


@rule(
    "QNT001",
    "mtp-built-quantised",
    severity="error",
    evidence=[
        "vllm-project/vllm#44087",
        "vllm-project/vllm#52649",
        "vllm-project/vllm#49187",
        "vllm-project/vllm#38650",
        "vllm/model_executor/layers/quantization: get_quant_method",
    ],
)
def mtp_built_quantised(
    target: Target,
    engine: Engine,
    mtp_scheme: Scheme,
    mtp_tensors: MtpTensors | None = None,
    quant_origin: str | None = None,
    draft_classes: DraftClasses | None = None,
) -> Iterator[Finding]:
    """The checkpoint's MTP layers are plain, and are built quantised."""
    if not mtp_scheme.everything:
        raise NotApplicable("only layers that the config names are quantised")
    if target.tensors is not None and mtp_tensors is None:
        raise NotApplicable("the checkpoint holds no MTP layers")
    tensors = known(mtp_tensors, f"safetensors headers of {target.reference}")
    classes = known(draft_classes, "the class that serves the draft")
    if known(quant_origin, f"whose quantisation {engine} builds the draft with") == "none":
        return
    layers = target.number("num_hidden_layers")
    wrong = [
        name
        for name in (*tensors.named(*LINEARS), *joined(tensors, mtp_scheme, engine, classes))
        if not found_in_tensors(name, mtp_scheme, engine) and not mtp_scheme.spares_any(name, layers)
    ]
    if not wrong:
        return
    phase: Phase = "load" if mtp_scheme.packed else "silent"
    outcome = (
        "it waits for packed weights, and loading ends in a mismatch of shapes or names"
        if mtp_scheme.packed
        else "no scales for them are loaded, so that what is drafted is garbage, or the release refuses to load"
    )
    more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    yield Finding(
        f"{wrong[0]}{more} of the MTP layers hold plain weights, and the target's quantization_config "
        f"({mtp_scheme.method}) spares none of them, so that {engine} builds them quantised: {outcome}.",
        target.config.at(mtp_scheme.pointer),
        phase,
        "certain" if mtp_scheme.packed else "likely",
        repair=repair(target, mtp_scheme, tensors),
    )


def joined(tensors: MtpTensors, scheme: Scheme, engine: Engine, classes: DraftClasses) -> tuple[str, ...]:
    """Plain layers beside the decoder layers (``fc``) that the release builds quantised."""
    joins = (engine.quantisation.joins or {}).get(draft_class(classes, engine), {})
    leaves = [leaf for leaf, plain in joins.items() if plain is not None and scheme.method not in plain]
    return tensors.named(*leaves)


def found_in_tensors(name: str, scheme: Scheme, engine: Engine) -> bool:
    """Whether the release sees by the checkpoint's own tensors that this layer is plain."""
    facts = engine.quantisation
    if facts.reads_tensors is None or facts.experts_too is None:
        raise MissingFact(f"whether {engine} looks into the checkpoint for what is quantised")
    if scheme.method not in facts.reads_tensors or any(key != "dynamic" for key in scheme.spares):
        return False
    if "modules_in_block_to_quantize" in scheme.block:
        raise MissingFact("what modules_in_block_to_quantize leaves out")
    return ".experts" not in name or scheme.method in facts.experts_too


def repair(target: Target, scheme: Scheme, tensors: MtpTensors) -> Repair:
    """The MTP layers among those that are spared, where no tensor of theirs is quantised."""
    if tensors.quantised:
        return Repair("manual", "name the plain MTP layers among those that the quantization_config spares")
    changes = sparing_changes(target, scheme, tensors)
    if not changes:
        return Repair("manual", "take a checkpoint whose quantization_config spares its MTP layers")
    return Repair(
        "safe" if by_pattern(scheme) else "unsafe",  # whole names are matched as the release calls its layers
        "add the MTP layers to what the target's quantization_config spares; none of their weights is quantised",
        ("target_config",),
        changes,
    )
