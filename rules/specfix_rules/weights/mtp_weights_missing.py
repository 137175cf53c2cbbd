"""WGT012: the checkpoint is without the layers that are to draft."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Location, Target
from specfix.deployment.model import MTP_KEYS
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.architecture import DraftClasses, first_known

NAMED = re.compile(r"mtp|nextn|eh_proj|enorm|hnorm", re.IGNORECASE)
LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


@rule(
    "WGT012",
    "mtp-weights-missing",
    severity="error",
    evidence=["vllm-project/vllm#35548", "vllm/model_executor/models/deepseek_mtp.py"],
)
def mtp_weights_missing(
    target: Target, draft: Draft, engine: Engine, method: str, draft_classes: DraftClasses
) -> Iterator[Finding]:
    """The target's config states layers of multi-token prediction, and its weights hold none."""
    if method != "mtp" or not draft.is_part_of(target):
        raise NotApplicable("the draft is no part of the target")
    stated = target.mtp_layers
    if not stated:
        raise NotApplicable("the target states no MTP layers")
    if target.tensors is None:
        raise MissingFact(f"a safetensors header of {target.reference}")
    layers = target.integer("num_hidden_layers")
    if any(NAMED.search(name) or beyond(name, layers) for name in target.tensors):
        return
    refused = first_known(draft_classes.built, engine) in engine.eagle.refuse_missing
    end = "refuses to load it" if refused else "does not look for them, and drafts with what was in memory"
    yield Finding(
        f"The config states {stated} MTP layers, and no tensor of the checkpoint belongs to one (none is of a layer "
        f"from {layers} on, none is named mtp): {engine} {end}.",
        at_count(target),
        "load" if refused else "silent",
        "certain" if refused else "likely",
        repair=Repair(
            "manual", "take a checkpoint that kept its MTP layers, or serve without speculation", ("target_config",)
        ),
    )


def beyond(name: str, layers: int) -> bool:
    """Whether a tensor is of a layer that the model itself does not have."""
    match = LAYER.search(name)
    return match is not None and int(match[1]) >= layers


def at_count(target: Target) -> Location:
    """Where the number of MTP layers stands."""
    return target.at(next((key for key in MTP_KEYS if target.config.find(key)), "mtp_config"))
