"""What a key that a config.json leaves out means to the engine: the value that its config class takes.

The class is the release's own where it has one for the model type, else that of the Transformers that the release asks
for. Where neither is known (a model with code of its own), a key that is left out stays missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from specfix.deployment import Deployment
from specfix.deployment.config import Config
from specfix.deployment.model import Model
from specfix.engines import Engine
from specfix.engines.facts.classes import ConfigClass
from specfix.engines.transformers import class_defaults, resolve
from specfix.errors import MissingFact

AnyModel = TypeVar("AnyModel", bound=Model)


@dataclass(frozen=True)
class ClassDefaults:
    """Answers :attr:`Config.absent` for one config; the class is looked up when a key is first asked for."""

    config: Config
    engine: Engine

    def __call__(self, key: str) -> tuple[str, Any] | None:
        """(class, value) that ``key`` has where no level of the config states it; None where it then has none.

        MissingFact where it has one that is not known."""
        if self._level is None:
            return None
        cls, base, values = self._level
        value = resolve(cls, values, key, base)
        return None if value is None else (cls.name, value)

    @cached_property
    def _level(self) -> tuple[ConfigClass, ConfigClass | None, Mapping[str, Any]] | None:
        """The class of the language model's own level, what it extends, and what the level states."""
        if self.config.is_speculators:  # made of a plain dictionary: what it leaves out is not there
            return None
        levels = list(self.config.levels())
        pointer, values = levels[0]
        if self.config.values.get("model_type") == "eagle" and len(levels) > 1:
            pointer, values = "", {**levels[1][1], **{k: v for k, v in values.items() if k != "model_type"}}
        model_type = values.get("model_type")
        if not isinstance(model_type, str):
            model_type = self._inner_type(pointer)
        cls = None if model_type is None else self._class(model_type)
        if cls is None or cls.missing_in:
            return None
        return cls, None if cls.base is None else self._transformers(cls.base), values

    def _inner_type(self, pointer: str) -> str | None:
        """The type that the class of the whole gives an inner config which does not name its own."""
        cls: ConfigClass | None = None
        name: str | None = self.config.values.get("model_type")
        for key in ["", *pointer.split("/")[1:]]:
            name = (cls.parts.get(key) if cls else None) if key else name
            cls = self._class(name) if isinstance(name, str) else None
        return name if cls else None

    def _class(self, model_type: str) -> ConfigClass | None:
        own = self.engine.configs
        name = (own.types or {}).get(model_type, model_type)
        return own.classes.get(name) or self._transformers(model_type)

    def _transformers(self, model_type: str) -> ConfigClass | None:
        try:
            return class_defaults(model_type, self.engine.requirements.transformers)
        except MissingFact:  # a range of which nothing is known
            return None


def with_class_defaults(deployment: Deployment, engine: Engine) -> Deployment:
    """``deployment``, whose models' configs answer for the keys that they leave out as this engine would."""
    target = _resolved(deployment.target, engine)
    draft = deployment.draft
    if draft is not None:
        # a built-in draft is the target's own config, and rules tell it by that
        same = draft.config is deployment.target.config
        draft = replace(draft, config=target.config) if same else _resolved(draft, engine)
    return replace(deployment, target=target, draft=draft)


def _resolved(model: AnyModel, engine: Engine) -> AnyModel:
    return replace(model, config=replace(model.config, absent=ClassDefaults(model.config, engine)))
