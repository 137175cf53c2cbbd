"""What a config class makes of configs that state the same keys: most of it hangs on no value of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from specfix.engines.facts.classes import ConfigClass
from specfix.engines.outcomes import UNKNOWN, written
from specfix.errors import MissingFact

MOST: Final = 256  # shapes that are kept of one class, and outcomes of one look-up

Keys = tuple[str, ...]
Found = tuple[str, Any] | None


class Watched(Mapping[str, Any]):
    """A config that knows of which keys the values were looked at, and not only whether they are there."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        value = self._values[key]
        self.read.add(key)
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Shape:
    """Of configs of one class that state the same keys in the same order, and null for the same: what was found for
    some, and is found for all. ``base`` is what the class extends."""

    def __init__(self, base: ConfigClass | None) -> None:
        self.base = base
        self.found: dict[Keys, Found] = {}  # whatever the values are
        # the keys whose values were looked at, and what was found by these values
        self._by_values: dict[Keys, tuple[Keys, dict[bytes | None, Found | MissingFact]]] = {}

    def recall(self, keys: Keys, values: Mapping[str, Any], find: Callable[[Mapping[str, Any]], Found]) -> Found:
        """What ``find`` finds in ``values`` for ``keys``, or the MissingFact that it raises. Where all is as it was of
        what it looked at before, it would look at the same again and find the same."""
        names, kept = self._by_values.setdefault(keys, ((), {}))
        key = written([values[name] for name in names])
        found: Found | MissingFact = kept.get(key, UNKNOWN)
        if found is UNKNOWN:
            watched = Watched(values)
            try:
                found = find(watched)
            except MissingFact as missing:
                found = MissingFact(*missing.args)  # another one, which keeps nothing of what was at hand
            if not watched.read <= set(names):
                self._by_values[keys] = (*watched.read.union(names),), {}
            elif key is not None:
                if len(kept) >= MOST:
                    kept.clear()
                kept[key] = found
        if isinstance(found, MissingFact):
            raise MissingFact(*found.args)
        if not names and not self._by_values[keys][0]:
            self.found[keys] = found
        return found


def shape_of(cls: ConfigClass, base: ConfigClass | None, levels: tuple[tuple[str, Mapping[str, Any]], ...]) -> Shape:
    """That of a config of ``cls``; ``levels`` are :attr:`Config.levels`."""
    stated = tuple([(place, *level, None, *[key for key in level if level[key] is None]) for place, level in levels])
    shape: Shape | None = cls.shapes.get(stated)
    if shape is None or shape.base is not base:
        if len(cls.shapes) >= MOST:
            cls.shapes.clear()
        shape = cls.shapes[stated] = Shape(base)
    return shape
