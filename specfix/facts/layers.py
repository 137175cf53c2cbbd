"""The proposer that holds the draft's layers."""

from __future__ import annotations

from specfix.deployment import Draft
from specfix.engines import Engine
from specfix.errors import MissingFact

# the file that holds what proposers share: the newer name first
SHARED = ("llm_base_proposer.py", "eagle.py")


def proposer_file(engine: Engine, draft: Draft, method: str) -> str:
    """The file in which the V1 runner's proposer for this draft goes through its layers."""
    files = {path.rpartition("/")[2]: path for path in engine.layers.iteration}
    own = [f"{method}.py"]
    if method == "mtp":  # proposers of single model families bear the family's name
        own = [f"{(draft.model_type or '').split('_')[0]}.py"]
    for name in (*own, *SHARED):
        if name in files:
            return files[name]
    raise MissingFact(f"how {engine} goes through the layers of a {method} draft")
