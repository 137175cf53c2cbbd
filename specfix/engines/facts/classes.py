"""Config classes and the values of their fields where a config.json does not state them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ConfigClass:
    """``defaults``: field to its class default. ``unknown``: fields whose default is not a plain value that can be
    read, each with the reason. A field in neither is none of this class."""

    name: str
    defaults: dict[str, Any] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigClassFacts:
    """The release's own config classes, by the model_type for which it takes them before Transformers'."""

    classes: dict[str, ConfigClass] = field(default_factory=dict)
