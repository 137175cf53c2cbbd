"""A function or lambda of the source, as a value that anyone may call."""

from __future__ import annotations

import ast
import types
from typing import Any

from specfix.engines.source.interpreter.names import Runner, Scope


class Function:
    """``defaults`` are those of its places, ``named`` those of its arguments by name alone (None: it has none)."""

    def __init__(
        self,
        runner: Runner,
        node: ast.FunctionDef | ast.Lambda,
        scope: Scope,
        defaults: list[Any],
        named: list[Any],
    ) -> None:
        self._runner, self._node, self.scope = runner, node, scope
        self._defaults, self._named = defaults, named
        self.owner: type | None = None
        self.__name__ = getattr(node, "name", "<lambda>")
        self.__doc__ = None

    def __get__(self, instance: Any, _: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __deepcopy__(self, _: Any) -> Function:
        return self

    def __call__(self, *given: Any, **named: Any) -> Any:
        scope = Scope(self.scope, self._bind(given, named))
        if self.owner is not None and given:
            owner = self.owner
            scope.names["super"] = lambda *_: super(owner, given[0])
        return self._runner.call(self._node.body, scope, given)

    def _bind(self, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        arguments = self._node.args
        places = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        by_name = [argument.arg for argument in arguments.kwonlyargs]
        bound = dict(zip(places[len(places) - len(self._defaults) :], self._defaults, strict=True))
        bound |= dict(zip(by_name, self._named, strict=True))
        bound |= dict(zip(places, given, strict=False))
        known = {*places, *by_name}
        bound |= {name: value for name, value in named.items() if name in known}
        if arguments.vararg:
            bound[arguments.vararg.arg] = given[len(places) :]
        elif len(given) > len(places):
            raise TypeError(f"{self.__name__}: too many arguments")
        rest = {name: value for name, value in named.items() if name not in known}
        if arguments.kwarg:
            bound[arguments.kwarg.arg] = rest
        elif rest:
            raise TypeError(f"{self.__name__} takes no {', '.join(rest)}")
        missing = [name for name in places if name not in bound]
        if missing:
            raise TypeError(f"{self.__name__} lacks {', '.join(missing)}")
        return bound
