"""``record``: ``dataclass(frozen=True)`` at a fiftieth of what it costs to make the class.

dataclass() writes source for each method of each class and compiles it: half a millisecond a class, and a check that is
done in a quarter of a second meets a hundred of them. The methods here are written once, for all. What works on
dataclasses (``fields``, ``replace``, ``asdict``, pydantic) works on records: each becomes one when it is asked for its
fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["is_record", "record"]


def is_record(kind: type) -> bool:
    """Whether a class is a record itself; does not make a dataclass of it."""
    return "_stated" in vars(kind)


if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import MISSING, Field, FrozenInstanceError, dataclass
    from inspect import get_annotations

    def record(*, frozen):
        """A decorator like ``dataclass(frozen=True)``. Records are always frozen; saying so tells type checkers."""
        if not frozen:
            raise TypeError("a record is frozen")
        return _made

    def _made(cls):
        own = {name: cls.__dict__.get(name, MISSING) for name in get_annotations(cls)}
        stated = {}  # name to its Field, to its default, or to MISSING
        for base in reversed(cls.__mro__[1:]):
            stated.update(base.__dict__.get("_stated", ()))
        stated.update(own)
        plain = [name for name, one in stated.items() if not isinstance(one, Field)]
        special = {name: one for name, one in stated.items() if isinstance(one, Field)}
        for name in own.keys() & special.keys():  # a default is an attribute of the class
            if special[name].default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, special[name].default)
        made_anew = {name: one.default_factory for name, one in special.items() if one.default_factory is not MISSING}
        needed = {name for name in plain if stated[name] is MISSING}
        needed |= {name for name, one in special.items() if one.default is MISSING and name not in made_anew}
        cls._stated, cls._made_anew, cls._needed = stated, made_anew, frozenset(needed)
        cls._shown = tuple(name for name in stated if name not in special or special[name].repr)
        cls._compared = tuple(name for name in stated if name not in special or special[name].compare)
        cls._positional = tuple(name for name in stated if name not in special or special[name].kw_only is not True)
        for method in (_init, _repr, _eq, _hash, _setattr, _delattr):
            setattr(cls, f"__{method.__name__.strip('_')}__", method)
        cls.__dataclass_fields__ = _Fields(cls, {name: special[name] for name in own.keys() & special.keys()})
        return cls

    class _Fields:
        """``__dataclass_fields__`` of a class, by which the library knows a dataclass: made when somebody looks."""

        def __init__(self, owner, special):
            self._owner, self._special = owner, special

        def __get__(self, instance, cls):
            for name, one in self._special.items():
                setattr(self._owner, name, one)
            dataclass(init=False, repr=False, eq=False)(self._owner)
            return self._owner.__dataclass_fields__

    def _init(self, *values, **named):
        state = self.__dict__  # a default is an attribute of the class
        state.update(zip(self._positional, values, strict=False))
        if len(values) > len(self._positional) or not state.keys().isdisjoint(named):
            raise TypeError(f"{type(self).__name__}: more values than fields, or two for one field")
        state.update(named)
        if not self._needed <= state.keys() or not named.keys() <= self._stated.keys():
            wrong = sorted(self._needed - state.keys()) or sorted(named.keys() - self._stated.keys())
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
