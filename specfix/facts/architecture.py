"""Which of the classes that a config names the engine takes."""

from __future__ import annotations

from collections.abc import Sequence

from specfix.deployment import Target
from specfix.engines import Engine
from specfix.errors import known


def architecture_of(target: Target, engine: Engine) -> str:
    """The class that serves the target."""
    return known(first_known(target.architectures, engine), f"architectures in {target.config.file}")


def first_known(names: Sequence[str], engine: Engine) -> str | None:
    """The first of ``names`` that the release's registry holds, as its ``resolve_model_cls`` chooses; where it holds
    none, the first, which Transformers may have. None where nothing is named."""
    return next((name for name in names if name in engine.methods.architectures), names[0] if names else None)
