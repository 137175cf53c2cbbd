"""What a patch puts in the place of what: all of it, or nothing."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

from .log import LEFT, Inert, guarded

ABSENT = object()
LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Change(NamedTuple):
    """An attribute, and what it shall be."""

    owner: Any
    name: str
    value: Any


Plan = tuple[Sequence[Change], str]
"""What a patch wants changed, and the line that says so; no line where it comes later."""


def make(changes: Sequence[Change]) -> None:
    """Make them all. Where one cannot be made, those before it are undone."""
    before: list[Change] = []
    try:
        for owner, name, value in changes:
            own = isinstance(owner, (type, ModuleType))  # what a class inherits stays with its base
            before.append(Change(owner, name, vars(owner).get(name, ABSENT) if own else getattr(owner, name)))
            setattr(owner, name, value)
    except BaseException:
        for change in reversed(before):
            _put_back(change)
        raise


def _put_back(change: Change) -> None:
    owner, name, value = change
    with suppress(Exception):  # what refuses to be changed was not changed
        if value is ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, value)


def rebound(old: Any, new: Any) -> list[Change]:
    """``new`` wherever a module of vLLM knows ``old``, which includes the copies that ``from … import`` makes."""
    known = [module for name, module in list(sys.modules.items()) if name == "vllm" or name.startswith("vllm.")]
    modules = [module for module in known if isinstance(module, ModuleType)]
    return [Change(module, name, new) for module in modules for name, value in vars(module).items() if value is old]


def around(owner: Any, name: str, hook: Callable[..., Any]) -> Change:
    """A method replaced by ``hook(original, self, *args, **kwargs)``, unless that was done before."""
    original = plain(vars(owner).get(name), f"{owner.__qualname__}.{name}")
    if getattr(original, "_specfix_shim", False):
        raise Inert(f"{owner.__qualname__}.{name} is already patched")

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return hook(original, *args, **kwargs)

    wrapper._specfix_shim = True  # type: ignore[attr-defined]
    return Change(owner, name, wrapper)


def after(owner: Any, name: str, patch: str, do: Callable[..., None]) -> Change:
    """A method followed by ``do``, with the same arguments; what ``do`` raises is a line, and no more."""

    def hook(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        with guarded(patch, LEFT):
            do(*args, **kwargs)
        return result

    return around(owner, name, hook)


def plain(function: Any, name: str) -> Any:
    """The function itself. Raises Inert for all that is called in another way, or that does its work later."""
    if not inspect.isfunction(function) or function.__code__.co_flags & LATER:
        raise Inert(f"{name} is no plain function")
    return function
