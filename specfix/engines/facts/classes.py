"""Config classes and the values of their fields where a config.json does not state them."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import Any

from specfix.record import record


@record(frozen=True)
class ConfigClass:
    """What a config class makes of a config.json (one level of it).

    ``defaults``: field to its value where the key is absent. ``derived``: field to the expression of the keys that
    the class computes it by, in the words of ``specfix.engines.transformers.expressions``. ``unknown``: fields that
    could not be read, each with the reason. ``aliases``: other name of a field to its own name. ``parts``: key of an
    inner config to the model type or name of its class; ``named_parts``: those of them whose own ``model_type`` comes
    first.

    ``base``, of a class of vLLM: the Transformers class that it extends, which is handed the keys of the config.json
    but those of ``defaults``, and with ``passed`` in their place; a field of ``defaults`` that it sets is as it sets
    it. ``completes_rope``, of the class under all others: "yes" where it completes RoPE parameters that a class has
    set, "unknown" where that is not followed. RoPE's theta and partial factor are fields even where Transformers keeps
    them in ``rope_parameters`` alone.

    Of a class of Transformers: ``minor``: that of which it was read; ``others``: what the class is in other minors that
    the engine may have; ``missing_in``: those of them that have no such class.
    """

    name: str
    defaults: dict[str, Any] = field(default_factory=dict)
    derived: dict[str, Any] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    named_parts: tuple[str, ...] = ()
    base: str | None = None
    passed: dict[str, Any] = field(default_factory=dict)
    completes_rope: str = ""
    missing_in: tuple[str, ...] = ()
    minor: str = ""
    others: tuple[ConfigClass, ...] = ()

    @cached_property
    def shapes(self) -> dict[Any, Any]:
        """What :mod:`specfix.engines.transformers.shape` keeps of this class."""
        return {}


@record(frozen=True)
class ConfigClassFacts:
    """The release's own config classes.

    ``types``: model type to the name of its class, where the release takes its own before Transformers'; ``classes``:
    those and what they extend or hold, by name; None where it could not be read. ``typed``: architectures that give a
    config.json without a model_type one. ``heads_within``: a ``text_config`` ends the start unless its class, not a
    plain object, has num_attention_heads.
    """

    types: dict[str, str] | None = None
    classes: dict[str, ConfigClass] = field(default_factory=dict)
    typed: tuple[str, ...] | None = None
    heads_within: bool | None = None
