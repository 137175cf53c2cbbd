"""POS014: a RoPE block whose type is refused while the config is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment, Model
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import MissingFact, known
from specfix.facts.class_defaults import ClassDefaults
from specfix.facts.positions import stated_block
from specfix.facts.transformers_fields import read_by_transformers

NEW, OLD = "rope_type", "type"
BLOCKS = ("rope_parameters", "rope_scaling")  # where Transformers 5 puts it, and 4


@rule(
    "POS014",
    "rope-type-refused",
    severity="error",
    evidence=["vllm/transformers_utils/config.py: patch_legacy_rope_type"],
)
def rope_type_refused(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """A RoPE block states two types that differ, or M-RoPE without its section."""
    pairs = known(engine.rope.type_pairs, f"whether {engine} holds rope_type against type")
    for surface, model in read_by_transformers(deployment, engine):
        for rope in model.ropes:
            block = stated_block(model, rope)
            if block is None or refusal(block, pairs, engine) is None:
                continue
            refused = refusal(as_read(model, engine), pairs, engine)  # some classes write one type over the other
            if refused is None:
                continue
            said, mend = refused
            side = surface.removesuffix("_config")
            yield Finding(
                f"The {side}'s RoPE block has {said}: {engine} refuses the config.",
                model.config.at(rope.pointer),
                "config",
                repair=Repair("manual", f"{mend}, as the {side} was trained", (surface,)),
            )


def refusal(block: Mapping[str, Any], pairs: Mapping[str, str], engine: Engine) -> tuple[str, str] | None:
    """What the release refuses of a block, and what would mend it."""
    stated = block.get(NEW, block.get(OLD))
    if NEW in block and OLD in block and stated != block[OLD] and (block[OLD], stated) not in pairs.items():
        return f"{NEW} {show(stated)} beside {OLD} {show(block[OLD])}", "leave one of the two"
    section = engine.rope.sections.get(stated) if isinstance(stated, str) else None
    if section is not None and section not in block:
        return f"the type {stated} and no {section}", f"write {section}, or another type"
    return None


def as_read(model: Model, engine: Engine) -> Mapping[str, Any]:
    """The block as the config's class leaves it."""
    made = ClassDefaults(model.config, engine)
    for key in BLOCKS:
        found = made(key)
        if found is not None and isinstance(found[1], Mapping):
            return found[1]
    raise MissingFact(f"what the class of {model.config.file} makes of its RoPE block")
