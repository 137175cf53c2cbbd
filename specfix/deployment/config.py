"""One JSON file of a model, with the place of each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from specfix.deployment.location import Location
from specfix.record import record

if TYPE_CHECKING:
    from typing import Protocol

    Found = tuple[str, Any] | None  # (pointer, value)

    class Absent(Protocol):
        """Answers for keys that a config leaves out."""

        def __call__(self, key: str) -> tuple[str, Any] | None:
            """(class, value) of the engine's config class, None where it has no such key either; MissingFact where the
            class has a value that is not known."""

        def find(self, keys: tuple[str, ...]) -> Found:
            """Of the first of ``keys`` to which the class gives a value, at the place where it would stand."""

        @property
        def found(self) -> Mapping[tuple[str, ...], Found]:
            """What was found so for other configs, and is for this one, whatever its values are."""


# where composite configs (vision, audio, omni) keep the language model's own keys, outermost first
TEXT_KEYS = ("thinker_config", "text_config", "llm_config")


@record(frozen=True)
class Config:
    """A parsed JSON object and where it came from.

    ``values`` is the object itself, unchanged; ``file`` is a path, or ``org/name:config.json`` on the Hub;
    ``text`` is the file's text, kept for line numbers and for what the report shows around an offending line.
    ``absent`` answers for a key that the config leaves out. ``overridden``: JSON pointers of values that are
    --hf-overrides', not the file's.
    """

    values: Mapping[str, Any]
    file: str
    text: str = field(repr=False, default="")
    absent: Absent | None = field(repr=False, compare=False, default=None)
    overridden: frozenset[str] = frozenset()

    @cached_property
    def levels(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """(JSON pointer, object) of the language model's config and of what encloses it, innermost first.

        Two formats of drafts wrap a config as well: speculators, whose ``transformer_layer_config`` is the
        base of what the engine reads, and vLLM's EAGLE, whose ``model`` gives what the config itself does
        not.
        """
        if self.values.get("model_type") == "eagle" and isinstance(self.values.get("model"), dict):
            return ("", self.values), ("/model", self.values["model"])
        found: list[tuple[str, Mapping[str, Any]]] = [("", self.values)]
        inner = (*TEXT_KEYS, "transformer_layer_config") if self.is_speculators else TEXT_KEYS
        for key in inner:
            pointer, level = found[-1]
            if isinstance(level.get(key), dict):
                found.append((f"{pointer}/{key}", level[key]))
        return tuple(reversed(found))

    @cached_property
    def is_speculators(self) -> bool:
        """Whether this is a config of the speculators library: its name for the algorithm, and a block of its own.

        Engines look for the block (``speculators_config``); a config that an engine cannot take for want of half of
        them is of the library all the same.
        """
        blocks = ("speculators_config", "transformer_layer_config")
        return self.values.get("speculators_model_type") is not None and any(
            self.values.get(block) is not None for block in blocks
        )

    def find(self, *keys: str) -> Found:
        """(pointer, value) of the first of ``keys`` that is present and not null, innermost level first; else of the
        first to which the engine's config class gives a value, at the place where it would stand.

        MissingFact where the class has a value that is not known."""
        if keys not in self._found:
            self._found[keys] = self.stated(*keys) or (self.absent.find(keys) if self.absent else None)
        return self._found[keys]

    @cached_property
    def _found(self) -> dict[tuple[str, ...], Found]:
        """What was asked for before: many rules ask for the same few keys."""
        return dict(self.absent.found) if self.absent else {}

    def stated(self, *keys: str) -> Found:
        """As :meth:`find`, of what the file itself says alone."""
        for pointer, level in self.levels:
            for key in keys:
                if level.get(key) is not None:
                    return place(pointer, key), level[key]
        return None

    def source(self, key: str) -> str:
        """Who gives ``key`` its value, for a message: "" for the file itself, else the config class."""
        given = None if self.absent is None or self.stated(key) else self.absent(key)
        return f", the default of {given[0]}" if given else ""

    def value(self, *keys: str) -> Any:
        """The value that :meth:`find` finds, or None."""
        found = self.find(*keys)
        return found[1] if found else None

    def at(self, pointer: str) -> Location:
        """Location of a JSON pointer; its line is looked up now, and is None where the key is absent."""
        if any(f"{pointer}/".startswith(f"{place}/") for place in self.overridden):
            return Location("command line", "--hf-overrides")
        return Location(self.file, pointer, text=self.text)


@lru_cache(4096)
def place(pointer: str, key: str) -> str:
    """The JSON pointer of ``key`` in the object at ``pointer``."""
    return f"{pointer}/{escape(key)}"


def escape(key: str) -> str:
    """``key`` as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
