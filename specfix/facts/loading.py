"""What becomes of a parameter that no tensor of the checkpoint fills.

Source: ``DefaultModelLoader`` (vllm/model_executor/model_loader/default_loader.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import known

FLAG: Final = "model_loader_extra_config"
KEY: Final = "enable_weights_track"
ENDS: Final = "what nothing was loaded into ends the start"


def unfilled(serving: Serving, engine: Engine, silent: str) -> tuple[Literal["load", "silent"], str]:
    """What becomes of such a parameter of a model that is not quantised, and that in words: a loader may be told not to
    look, where it knows the key for that. ``silent``: what follows then."""
    given = serving.flag(FLAG)
    if not isinstance(given, Mapping) or KEY not in given:
        return "load", ENDS
    if KEY not in known(engine.eagle.load_keys, f"which keys {engine} takes in {FLAG}"):
        return "load", f"{engine} refuses {KEY} in {FLAG}, and without it {ENDS}"
    if given[KEY] is None or given[KEY]:
        return "load", ENDS
    return "silent", f"{FLAG} has that not checked, {silent}"
