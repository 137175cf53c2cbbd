"""The draft's layers, and the proposer that goes through them."""

from __future__ import annotations

from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable

# the file that holds what proposers share: the newer name first
SHARED = ("llm_base_proposer.py", "eagle.py")


def layer_kinds(target: Target, draft: Draft) -> tuple[str, ...]:
    """Kinds of the draft's own layers (sliding_attention, full_attention), sorted."""
    if draft.is_part_of(target):
        raise NotApplicable("the engine builds the layers of a built-in draft itself")
    found = draft.config.find("layer_types")
    if found is None:
        return ()
    # heads are published with their target's whole list; the layers that they have are its first ones
    return tuple(sorted(set(found[1][: draft.number("num_hidden_layers")])))


def proposer_file(engine: Engine, draft: Draft, method: str) -> str:
    """The file in which the V1 runner's proposer for this draft goes through its layers."""
    files = {path.rpartition("/")[2]: path for path in engine.layers.iteration}
    family = (draft.model_type or "").partition("_")[0]  # proposers of one model family bear its name
    for name in (f"{family if method == 'mtp' else method}.py", *SHARED):
        if name in files:
            return files[name]
    raise MissingFact(f"how {engine} goes through the layers of a {method} draft")
