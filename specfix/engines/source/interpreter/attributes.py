"""``value.name`` of the source, for reading and setting, with what ``access`` allows."""

from __future__ import annotations

import argparse
from typing import Any

from specfix.engines.source.interpreter.access import is_open, of_base, of_instance
from specfix.engines.source.interpreter.names import Module
from specfix.engines.source.interpreter.source_classes import SourceClass, is_foreign, members, not_here
from specfix.engines.source.interpreter.standins import Made, Names, UndecidedError, Unknown, outside


def attribute(value: Any, name: str) -> Any:
    """``value.name``. AttributeError as Python would."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Module):
        return value.attribute(name)
    if isinstance(value, Names):
        return value.get(name)
    if isinstance(value, Made):
        return value.named.get(name, Unknown(f"{value.kind.__name__}().{name} is worked out by its class"))
    if is_foreign(value):
        return getattr(value, name) if name in {"__name__", "__module__"} else outside(f"{value.path}.{name}")
    if isinstance(value, super) or isinstance(value if isinstance(value, type) else type(value), SourceClass):
        return _own_attribute(value, name)
    if is_open(value, name):
        return getattr(value, name)
    if isinstance(value, str) and name in {"format", "format_map"}:
        return Unknown(f"str.{name} is not run")
    kind = value if isinstance(value, type) else type(value)
    if not any(name in vars(owner) for owner in kind.__mro__) and name not in getattr(value, "__dict__", {}):
        raise AttributeError(name)
    raise UndecidedError(f"{name} is not looked at")


def _own_attribute(value: Any, name: str) -> Any:
    """Of a class of the source, of its instance, or of ``super()``: what the source itself binds, and what is open of
    the class of Python's own that it extends."""
    if isinstance(value, super):
        cls: Any = value.__self_class__  # type: ignore[attr-defined]
        order = cls.__mro__[cls.__mro__.index(value.__thisclass__) + 1 :]  # type: ignore[attr-defined]
    else:
        cls = value if isinstance(value, type) else type(value)
        order = cls.__mro__
        if not isinstance(value, type) and hasattr(value, "__dict__") and of_instance(value, name):
            return vars(value)[name]
    for owner in order:
        if isinstance(owner, SourceClass):
            if name in members(owner):
                return getattr(value, name)
        elif is_foreign(owner):
            if not name.startswith("__"):
                return not_here(cls, name, owner)
        elif name in vars(owner) and of_base(cls, name):
            return getattr(value, name)
    if name in {"__name__", "__module__", "__doc__"} and isinstance(value, type):
        return type.__getattribute__(value, name)
    if name in {"__init__", "__post_init__"}:
        return lambda *_, **__: None
    raise AttributeError(f"{cls.__name__} has no {name}")


def get_attribute(value: Any, name: str, *default: Any) -> Any:
    """``getattr(value, name, default)``."""
    try:
        return attribute(value, name)
    except (AttributeError, KeyError):
        if default:
            return default[0]
        raise


def has_attribute(value: Any, name: str) -> bool:
    """``hasattr(value, name)``."""
    if isinstance(value, Unknown | Made):
        raise UndecidedError(f"whether there is a {name}")
    try:
        attribute(value, name)
    except AttributeError:
        return False
    return True


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """``setattr(owner, name, value)``."""
    own = isinstance(type(owner), SourceClass) or isinstance(owner, argparse.Action | argparse.Namespace)
    if not own or name.startswith("__"):
        raise UndecidedError(f"{name} is set")
    setattr(owner, name, value)
