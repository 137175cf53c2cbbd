"""What the Transformers that a release admits makes of a config: newer ones check the types of its fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from specfix.deployment import Deployment, Model
from specfix.engines import Engine
from specfix.engines.transformers import types_checked
from specfix.errors import known

Side = Literal["target_config", "draft_config"]


def checks_types(engine: Engine) -> bool:
    """Whether every Transformers that the release admits checks the types of a config's fields."""
    return types_checked(known(engine.requirements.transformers, f"which Transformers {engine} needs"))


def read_by_transformers(deployment: Deployment, engine: Engine) -> Iterator[tuple[Side, Model]]:
    """The models whose config is read by a class of Transformers' own."""
    target, draft = deployment.target, deployment.draft
    sides: list[tuple[Side, Model]] = [("target_config", target)]
    if draft is not None and not draft.is_part_of(target):
        sides.append(("draft_config", draft))
    for side, model in sides:
        of_its_own = model.config.is_speculators or model.config.values.get("auto_map") is not None
        if not of_its_own and model.model_type not in (engine.configs.types or ()):
            yield side, model
