"""What becomes of a parameter that no tensor of the checkpoint fills.

Source: ``load_weights`` and ``track_weights_loading`` (vllm/model_executor/model_loader/default_loader.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from specfix.deployment import Serving

FLAG: Final = "model_loader_extra_config"
KEY: Final = "enable_weights_track"


def fill_checked(serving: Serving) -> bool:
    """Whether such a parameter, of a model that is not quantised, ends the start: a loader may be told not to look."""
    given = serving.flag(FLAG)
    asked = given.get(KEY) if isinstance(given, Mapping) else None
    return asked is None or bool(asked)
