"""The environment variables of a release, read of its table of them (``environment_variables`` in ``envs.py``).

Each entry is a function that reads one variable. The interpreter runs it with no variable set, which gives the
default, and with a few texts, which tells what a text is read as.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from specfix.engines.facts.serving import Variable, VariableFacts
from specfix.engines.readers.flags import REFUSED, as_json, attempt
from specfix.engines.source.interpreter.functions import Function
from specfix.engines.source.interpreter.run import Interpreter
from specfix.engines.source.interpreter.standins import HomePath, UndecidedError
from specfix.engines.source.tree import SourceTree

MODULE, TABLE = "vllm.envs", "environment_variables"
SWITCHES = ("1", "0", "true", "false")
WORDS, NUMBER, OBJECT = "Ab,cd", "7", '{"a": 1}'


def read_variables(tree: SourceTree, unknown: dict[str, str]) -> VariableFacts:
    interpreter = Interpreter(tree)
    table = interpreter.name(MODULE, TABLE)
    if not isinstance(table, dict):
        unknown["variables.variables"] = getattr(table, "reason", f"{TABLE} of {MODULE} is no table")
        return VariableFacts()
    found = {name: _variable(name, table[name], interpreter, unknown) for name in sorted(table)}
    return VariableFacts(found)


def _variable(name: str, getter: Any, interpreter: Interpreter, unknown: dict[str, str]) -> Variable:
    def reads(text: str | None) -> Any:
        """The value where the variable is this text (None: it is not set), or REFUSED."""
        interpreter.environment.clear()
        interpreter.environment |= {} if text is None else {name: text}
        try:
            return attempt(getter)
        finally:
            interpreter.environment.clear()

    kind: str | None = None
    more: Mapping[str, Any] = {}
    default = None
    try:
        value = reads(None)
        if value is REFUSED:
            raise UndecidedError("it must be set")
        default = as_json(value)
    except UndecidedError as error:
        unknown[f"variables.variables.{name}.default"] = str(error)
    try:
        kind, more = _kind(reads, getter)
    except UndecidedError as error:
        unknown[f"variables.variables.{name}.kind"] = str(error)
    return Variable(kind, default, **more)


def _kind(reads: Callable[[str | None], Any], getter: Any) -> tuple[str, Mapping[str, Any]]:
    """The kind, and further fields of the variable."""
    choices = _choices(getter)
    if choices is not None:
        taken = {text: reads(text) for text in choices}
        several = all(isinstance(value, list | set | tuple) for value in taken.values())
        if choices and REFUSED not in taken.values() and reads(WORDS) is REFUSED:
            return "list" if several else "str", {"choices": choices}
        raise UndecidedError("its choices are not what it takes")
    with contextlib.suppress(UndecidedError):
        if isinstance(reads(OBJECT), dict):
            return "json", {}
    number = reads(NUMBER)
    if isinstance(number, int | float) and number == 7 and not isinstance(number, bool):
        return "float" if isinstance(number, float) else "int", {}
    switched = {text: reads(text) for text in SWITCHES}
    words = reads(WORDS)
    if {value for value in switched.values() if isinstance(value, bool)} == {True, False} and not isinstance(
        words, str
    ):
        return "bool", {state: tuple(t for t, v in switched.items() if v is (state == "on")) for state in ("on", "off")}
    if isinstance(words, list | set | tuple):
        return "list", {}
    if isinstance(words, HomePath):
        return "path", {}
    if isinstance(words, str):
        return "str", {}
    if len({repr(value) for value in (reads(None), words, number)}) == 1:
        raise UndecidedError("its text changes nothing")
    raise UndecidedError("it takes none of the texts that were tried")


def _choices(getter: Any) -> tuple[str, ...] | None:
    """The choices that a function of the source was made with, by the name of its variable; None where it has none."""
    if not isinstance(getter, Function):
        return None
    try:
        choices = getter.scope.get("choices")
        choices = choices() if callable(choices) else choices
    except UndecidedError:
        return None
    if isinstance(choices, list | tuple) and all(isinstance(choice, str) for choice in choices):
        return tuple(choices)
    raise UndecidedError(getattr(choices, "reason", "its choices are no list"))
