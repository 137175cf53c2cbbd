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
    from copy import copy
    from dataclasses import MISSING, Field, FrozenInstanceError, field, make_dataclass
    from inspect import get_annotations
    from threading import Lock

    MAKING = Lock()
    OFTEN = 1000  # times that a class is made: more than in one check

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
        cls._stated = stated
        cls._shown = tuple(name for name in stated if name not in special or special[name].repr)
        cls._compared = tuple(name for name in stated if name not in special or special[name].compare)
        positional = tuple(name for name in stated if name not in special or special[name].kw_only is not True)
        cls.__init__ = _init(cls, positional, frozenset(needed), made_anew)
        for method in (_repr, _eq, _hash, _setattr, _delattr):
            setattr(cls, f"__{method.__name__.strip('_')}__", method)
        cls.__dataclass_fields__ = _Fields(cls)
        return cls

    class _Fields:
        """``__dataclass_fields__`` of a class, by which the library knows a dataclass: made when somebody looks."""

        def __init__(self, owner):
            self._owner = owner

        def __get__(self, instance, cls):
            with MAKING:
                if vars(self._owner)["__dataclass_fields__"] is self:
                    made = _dataclass(self._owner)
                    self._owner.__dataclass_params__ = made.__dataclass_params__
                    self._owner.__dataclass_fields__ = made.__dataclass_fields__
            return vars(self._owner)["__dataclass_fields__"]

    def _dataclass(cls):
        """A dataclass with the same fields. The class itself stays as it is: others may be using it meanwhile."""
        kinds = {}
        for base in reversed(cls.__mro__):
            kinds.update(get_annotations(base) if is_record(base) else {})
        stated = []
        for name, one in cls._stated.items():
            own = copy(one) if isinstance(one, Field) else field(default=one)
            stated.append((name, kinds[name], own))
        return make_dataclass(cls.__name__, stated, frozen=True)

    def _init(cls, positional, needed, made_anew):
        times, stated = 0, cls._stated.keys()

        def __init__(self, *values, **named):
            nonlocal times
            times += 1
            if times == OFTEN:  # half a millisecond once, then half as long as here each time
                cls.__init__ = _dataclass(cls).__init__
            state = self.__dict__  # a default is an attribute of the class
            state.update(zip(positional, values, strict=False))
            if len(values) > len(positional) or not state.keys().isdisjoint(named):
                raise TypeError(f"{type(self).__name__}: more values than fields, or two for one field")
            state.update(named)
            if not needed <= state.keys() or not named.keys() <= stated:
                wrong = sorted(needed - state.keys()) or sorted(named.keys() - stated)
                raise TypeError(f"{type(self).__name__}: fields missing or not known: {', '.join(wrong)}")
            for name, make in made_anew.items():
                if name not in state:
                    state[name] = make()

        return __init__

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
