"""The stand-ins for classes of the source: their members are worked out when they are asked for."""

from __future__ import annotations

import argparse
import ast
import dataclasses
from typing import Any

from specfix.engines.source.interpreter.names import Module, Runner, Scope
from specfix.engines.source.interpreter.standins import FieldInfo, Made, Outside, Unknown

# what a class of the source may really be made of
REAL_BASES = (argparse.Action, argparse.ArgumentParser, argparse._ArgumentGroup, BaseException, argparse.HelpFormatter)


class SourceClass(Outside):
    """The type of the stand-ins."""

    node: ast.ClassDef
    scope: Scope | Module
    interpreter: Runner

    def __call__(cls, *given: Any, **named: Any) -> Any:
        if issubclass(cls, REAL_BASES):
            return type.__call__(cls, *given, **named)
        return Made(cls, given, named)

    def __getattr__(cls, name: str) -> Any:
        for owner in cls.__mro__:
            statement = members(owner).get(name)
            if isinstance(owner, SourceClass) and statement is not None:
                value = owner.interpreter.bind(statement, name, ClassScope(owner.scope, owner))
                if isinstance(value, FieldInfo):
                    if not value.from_dataclasses:
                        return Unknown(f"{owner.__name__}.{name} is made over by pydantic")
                    if value.default is dataclasses.MISSING:
                        raise AttributeError(name)
                    value = value.default
                elif isinstance(value, dict | list | set) and not value and not issubclass(cls, REAL_BASES):
                    value = Unknown(f"{owner.__name__}.{name} is filled while the engine runs")
                type.__setattr__(owner, name, value)
                return value
            if is_foreign(owner) and not name.startswith("__"):
                return not_here(cls, name, owner)
        raise AttributeError(f"{cls.__name__} has no {name}")


class ClassScope(Scope):
    """The body of a class."""

    def __init__(self, parent: Scope | Module, cls: type) -> None:
        super().__init__(parent)
        self._cls = cls

    def get(self, name: str) -> Any:
        return getattr(self._cls, name) if name in members(self._cls) else self.parent.get(name)


def members(cls: type) -> dict[str, ast.stmt]:
    """Names that the body of a class of the source binds."""
    found: dict[str, ast.stmt] = cls.__dict__.get("_members", {})
    return found


def is_foreign(value: Any) -> bool:
    """Whether it is a name of another package, which only its identity is known of."""
    return isinstance(value, Outside) and not isinstance(value, SourceClass)


def not_here(cls: type, name: str, base: Any) -> Unknown:
    """An attribute that ``cls`` may have of a base that is not of this source."""
    return Unknown(f"{cls.__name__}.{name}: {base.path} is not in this source")
