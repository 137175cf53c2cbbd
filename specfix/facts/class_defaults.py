"""What a key that a config.json leaves out means to the engine: the value that its config class takes.

The class is the release's own where it has one for the model type, else that of the Transformers that the release asks
for. Where neither is known, and where the config names code of its own (``auto_map``), which counts with
--trust-remote-code only, a key that is left out stays missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from specfix.deployment import Deployment
from specfix.deployment.config import Config, place
from specfix.deployment.model import Model
from specfix.engines import Engine
from specfix.engines.facts.classes import ConfigClass
from specfix.engines.transformers import class_defaults, resolve
from specfix.engines.transformers.shape import Found, Shape, shape_of
from specfix.errors import MissingFact
from specfix.facts.overrides import with_overrides
from specfix.record import record

AnyModel = TypeVar("AnyModel", bound=Model)


@record(frozen=True)
class ClassDefaults:
    """:attr:`Config.absent` of one config; the class is looked up when a key is first asked for."""

    config: Config
    engine: Engine

    def __call__(self, key: str) -> tuple[str, Any] | None:
        """(class, value) that ``key`` has where no level of the config states it; None where it then has none.

        MissingFact where it has one that is not known."""
        if self._level is None:
            return None
        cls, base, values, _ = self._level
        value = resolve(cls, values, key, base)
        return None if value is None else (cls.name, value)

    def find(self, keys: tuple[str, ...]) -> Found:
        """(pointer, value) of the first of ``keys``, which no level states, to which the class gives a value."""
        if self._level is None:
            return None
        cls, base, values, shape = self._level
        innermost = self.config.levels[0][0]

        def first(values: Mapping[str, Any]) -> Found:
            for key in keys:
                value = resolve(cls, values, key, base)
                if value is not None:
                    return place(innermost, key), value
            return None

        return shape.recall(keys, values, first)

    @property
    def found(self) -> Mapping[tuple[str, ...], Found]:
        """What :meth:`find` has found for other configs, and finds for this one, whatever the values are."""
        return {} if self._level is None else self._level[-1].found

    @cached_property
    def _level(self) -> tuple[ConfigClass, ConfigClass | None, Mapping[str, Any], Shape] | None:
        """The class of the language model's own level, what it extends, what the level states, and its shape."""
        if self.config.is_speculators:  # made of a plain dictionary: what it leaves out is not there
            return None
        remote = self.config.values.get("auto_map")
        if isinstance(remote, dict) and "AutoConfig" in remote and not self._is_own():
            return None
        levels = self.config.levels
        pointer, values = levels[0]
        if self.config.values.get("model_type") == "eagle" and len(levels) > 1:
            inner = levels[1][1]
            name, values = inner.get("model_type"), {**inner, **values}
        else:
            name = self._type_of(pointer)
        cls = self._class(name) if isinstance(name, str) else None
        if cls is None or cls.missing_in:
            return None
        base = None if cls.base is None else self._transformers(cls.base)
        return cls, base, values, shape_of(cls, base, levels)

    def holds(self, key: str) -> bool:
        """Whether the class of the whole config, or what it extends, knows ``key``. MissingFact where no class is
        known."""
        name = self.config.values.get("model_type")
        remote = isinstance(self.config.values.get("auto_map"), Mapping) and not self._is_own()
        cls = self._class(name) if isinstance(name, str) and not remote else None
        if cls is None or cls.missing_in:
            raise MissingFact(f"the config class of {self.config.file}")
        base = None if cls.base is None else self._transformers(cls.base)
        if cls.base is not None and base is None:
            raise MissingFact(f"the config class of {self.config.file}")
        whole = [each for one in (cls, base) if one is not None for each in (one, *one.others)]
        return any(
            key in names
            for each in whole
            for names in (each.defaults, each.derived, each.unknown, each.aliases, each.parts)
        )

    def _is_own(self) -> bool:
        """Whether the release has a class of its own for this type: it counts before any code of the model's."""
        return self.config.values.get("model_type") in (self.engine.configs.types or {})

    def _type_of(self, pointer: str) -> str | None:
        """Model type, or name of the class, of the level at ``pointer``: the class of the whole says which class an
        inner config has, and for some that its own ``model_type`` does."""
        level: Any = self.config.values
        name = level.get("model_type")
        for key in pointer.split("/")[1:]:
            outer = self._class(name) if isinstance(name, str) else None
            level = level[key]
            if outer is None or key not in outer.parts:
                return None
            own = level.get("model_type") if key in outer.named_parts else None
            name = own if isinstance(own, str) else outer.parts[key]
        return name if isinstance(name, str) else None

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
    """``deployment``, whose models' configs answer for the keys that they leave out as this engine would, and hold what
    the flags set."""
    own = deployment.draft is not None and deployment.draft.config is deployment.target.config
    deployment = with_overrides(deployment)
    target = _resolved(deployment.target, engine)
    draft = deployment.draft
    if draft is not None:
        # a built-in draft is the target's own config but for the overrides, where these do not reach it
        same = own and (engine.lengths.overrides_reach_draft or draft.config is deployment.target.config)
        draft = replace(draft, config=target.config) if same else _resolved(draft, engine)
    return replace(deployment, target=target, draft=draft)


def _resolved(model: AnyModel, engine: Engine) -> AnyModel:
    return replace(model, config=replace(model.config, absent=ClassDefaults(model.config, engine)))
