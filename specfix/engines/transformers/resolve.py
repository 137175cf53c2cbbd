"""What a config class makes of one level of a config.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specfix.engines.facts.classes import ConfigClass
from specfix.engines.transformers.expressions import ABSENT, COMPLETES, Resolver, evaluate
from specfix.errors import MissingFact


def resolve(cls: ConfigClass, values: Mapping[str, Any], key: str, base: ConfigClass | None = None) -> Any:
    """The value that attribute ``key`` has once ``cls`` is made of ``values``, one level of a config.json as it stands.

    None where it is null, and where the class has no such field and ``values`` no such key (see :func:`fields`); a key
    that is no field of the class is what ``values`` say. ``dtype`` is the name as the config writes it. ``base`` is the
    class that ``cls.base`` names, as ``class_defaults`` gives it. MissingFact where the value is not known, or not the
    same in all Transformers that the engine may have, with the reason.
    """
    found = _agreed(cls, values, key, base)
    return None if found is ABSENT else found


def fields(cls: ConfigClass, base: ConfigClass | None = None) -> frozenset[str]:
    """Names of all fields that are known of ``cls`` and ``base``, inner configs and other names excluded."""
    own = frozenset((*cls.defaults, *cls.derived, *cls.unknown)).union(*map(fields, cls.others))
    return own | fields(base) if base else own


def _agreed(cls: ConfigClass, values: Mapping[str, Any], key: str, base: ConfigClass | None) -> Any:
    found = _attribute(cls, values, key, base)
    for other in cls.others:
        different = _attribute(other, values, key, base)
        if (found is ABSENT) != (different is ABSENT) or not same(found, different):
            raise MissingFact(f"{key} of {cls.name} (Transformers {other.minor} and {cls.minor} differ)")
    return found


def same(one: Any, other: Any) -> bool:
    """Whether both are one JSON value: 1 and true are two."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _attribute(cls: ConfigClass, values: Mapping[str, Any], key: str, base: ConfigClass | None) -> Any:
    name = cls.aliases.get(key, key)
    if name in cls.unknown:
        raise MissingFact(f"{key} of {cls.name} ({cls.unknown[name]})")
    if name in cls.parts:
        raise MissingFact(f"{key} of {cls.name}, which is a config of its own")

    def of_field(other: str) -> Any:
        if other not in cls.defaults:
            return _attribute(cls, values, other, base)
        for alias, own in cls.aliases.items():
            if own == other and alias in values:
                return values[alias]
        return values[other] if other in values else cls.defaults[other]

    def of_base(other: str) -> Any:
        if base is None:
            raise MissingFact(f"what {cls.base} makes of it")
        if other == COMPLETES:
            return (
                base.completes_rope
                if {base.completes_rope} == {each.completes_rope for each in (base, *base.others)}
                else "unknown"
            )
        return _agreed(base, _Handed(cls, values, of_field), other, None)

    try:
        if name in cls.derived:
            return evaluate(cls.derived[name], values, of_field, of_base)
        if name in cls.defaults:
            found = ABSENT if cls.base is None else of_base(name)
            return of_field(name) if found is ABSENT else found
        if cls.base is not None:
            return of_base(name)
    except MissingFact as missing:
        raise MissingFact(f"{key} of {cls.name} ({missing})") from None
    return values.get(key, ABSENT)


class _Handed(Mapping[str, Any]):
    """The keys that a class hands to the one that it extends; each is evaluated when it is asked for."""

    def __init__(self, cls: ConfigClass, values: Mapping[str, Any], of_field: Resolver) -> None:
        self._cls, self._values, self._of_field = cls, values, of_field

    def __getitem__(self, key: str) -> Any:
        if key in self._cls.passed:
            found = evaluate(self._cls.passed[key], self._values, self._of_field)
        else:
            found = ABSENT if key in self._cls.defaults else self._values.get(key, ABSENT)
        if found is ABSENT:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[str]:
        return (key for key in {**self._values, **self._cls.passed} if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
