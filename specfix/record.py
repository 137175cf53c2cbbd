"""``record``: ``dataclass(frozen=True)`` at a twentieth of what it costs to make the class.

dataclass() writes source for each method of each class and compiles it: half a millisecond a class, and a check that is
done in a quarter of a second meets a hundred of them. The methods here are written once, for all. What works on
dataclasses (``fields``, ``replace``, ``asdict``, pydantic) works on records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import MISSING, FrozenInstanceError, dataclass

    def record(*, frozen):
        """A decorator like ``dataclass(frozen=True)``. Records are always frozen; saying so tells type checkers."""
        if not frozen:
            raise TypeError("a record is frozen")
        return _made

    def _made(cls):
        dataclass(init=False, repr=False, eq=False)(cls)
        for method in (_init, _repr, _eq, _hash, _setattr, _delattr):
            setattr(cls, f"__{method.__name__.strip('_')}__", method)
        known = cls.__dataclass_fields__
        cls._shown = tuple(name for name, one in known.items() if one.repr)
        cls._compared = tuple(name for name, one in known.items() if one.compare)
        cls._positional = tuple(name for name, one in known.items() if not one.kw_only)
        cls._needed = frozenset(
            name for name, one in known.items() if one.default is MISSING and one.default_factory is MISSING
        )
        cls._made_anew = {
            name: one.default_factory for name, one in known.items() if one.default_factory is not MISSING
        }
        return cls

    def _init(self, *values, **named):
        state = self.__dict__  # a default is an attribute of the class
        state.update(zip(self._positional, values, strict=False))
        if len(values) > len(self._positional) or not state.keys().isdisjoint(named):
            raise TypeError(f"{type(self).__name__}: more values than fields, or two for one field")
        state.update(named)
        if not self._needed <= state.keys() or (named and not state.keys() <= type(self).__dataclass_fields__.keys()):
            wrong = sorted(self._needed - state.keys()) or sorted(state.keys() - type(self).__dataclass_fields__.keys())
            raise TypeError(f"{type(self).__name__}: fields missing or not known: {', '.join(wrong)}")
        for name, make in self._made_anew.items():
            if name not in state:
                state[name] = make()

    def _values(self):
        return tuple([getattr(self, name) for name in self._compared])

    def _repr(self):
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._shown)})"

    def _eq(self, other):
        return _values(self) == _values(other) if type(self) is type(other) else NotImplemented

    def _hash(self):
        return hash(_values(self))

    def _setattr(self, name, value):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _delattr(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
