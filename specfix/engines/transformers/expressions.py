"""The words of ``ConfigClass.derived``: an expression is what a class computes a field by, over the keys of a config.

It is JSON. A scalar is itself; a list is a word and its operands:

    ["lit", X]              X, a list or an object
    ["given", KEY, E]       the config's own value of KEY, else E; without E: nothing at all ("absent")
    ["field", NAME]         the field NAME: the config's own value, else its plain default, else what it is derived by
    ["base", NAME, E]       what the Transformers class that is extended makes of NAME, else E
    ["if", C, A, B]         A where C is true, else B
    ["none", E, A]          E, or A where E is null
    ["some", E, A]          null where E is null, else A, in which ["var", "it"] is E
    ["else", E, A]          E, or A where E is absent
    ["last", E, KEY, …]     the value of that of the keys which stands last in the config, E where none is there
    ["each", E, V, A, C]    a list of A for each element V of E (V: a name, or ["lit", names]) for which C is true
    ["var", V]              that element
    ["unknown", WHY]        what the source does not tell
    ["rope", E, T, F, O, P, K]  RoPE parameters as Transformers 5 puts them together: E, with the theta T and the
                            rotary factor F where they lack them, original length O or P, and K for the type default
    ["completed", E, R]     R where the class under all others completes RoPE parameters, else E
    ["+", A, B] …           Python's operators and functions, by their names there
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from specfix.engines.comparisons import COMPARISONS
from specfix.errors import MissingFact

ABSENT: Final = type("Absent", (), {"__repr__": lambda _: "absent", "__bool__": lambda _: False})()
TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "int": (int,),
    "float": (float,),
    "str": (str,),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict, Mapping),
    "tuple": (tuple,),
    "set": (set, frozenset),
}
SCALED_FROM_ORIGINAL: Final = ("llama3", "yarn", "longrope")
COMPLETES: Final = "completes_rope of the base"  # asked of a base as if it were a field
MAX_ELEMENTS: Final = 4096  # that are gone through one by one: layers, of which no model has so many
MAX_LENGTH: Final = 1 << 16  # elements of a list; a config must not fill memory


def _range(*bounds: int) -> list[int]:
    numbers = range(*bounds)
    if len(numbers) > MAX_LENGTH:
        raise ValueError("too long")
    return list(numbers)


def _times(one: Any, other: Any) -> Any:
    for sequence, count in ((one, other), (other, one)):
        if isinstance(sequence, list | tuple | str) and len(sequence) * max(int(count), 0) > MAX_LENGTH:
            raise ValueError("too long")
    return one * other


def _power(one: Any, other: Any) -> Any:
    if abs(other) > 64:
        raise ValueError("too large")
    return one**other


def _with(mapping: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    return {**mapping, key: value}


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": _times,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": _power,
    "^": operator.xor,
    "neg": operator.neg,
    **COMPARISONS,
    "not": operator.not_,
    "is absent": lambda value: value is ABSENT,
    "abs": abs,
    "all": all,
    "any": any,
    "bool": bool,
    "ceil": math.ceil,
    "dict": lambda *parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    "enumerate": lambda *parts: [list(pair) for pair in enumerate(*parts)],
    "float": float,
    "floor": math.floor,
    "get": lambda mapping, key, default=None: mapping.get(key, default),
    "int": int,
    "isinstance": lambda value, *names: isinstance(value, tuple(kind for name in names for kind in TYPES[name])),
    "item": operator.getitem,
    "keys": lambda mapping: list(mapping.keys()),
    "len": len,
    "list": lambda *parts: list(parts),
    "list of": list,
    "log": math.log,
    "lower": lambda text: text.lower(),
    "max": max,
    "min": min,
    "range": _range,
    "round": round,
    "slice": lambda whole, *bounds: whole[slice(*bounds)],
    "sqrt": math.sqrt,
    "startswith": lambda text, start: text.startswith(start),
    "str": str,
    "sum": sum,
    "text": lambda *parts: "".join(map(str, parts)),
    "values": lambda mapping: list(mapping.values()),
    "with": _with,
}

Resolver = Callable[[str], Any]


def evaluate(
    expression: Any,
    values: Mapping[str, Any],
    field: Resolver | None = None,
    base: Resolver | None = None,
    variables: Mapping[str, Any] | None = None,
) -> Any:
    """What ``expression`` comes to for a config of these ``values``: a value, or ABSENT.

    ``field`` gives the value of a plain field, ``base`` that of the extended class. MissingFact where it is not known,
    and where the class's own computation fails on these values.
    """
    if not isinstance(expression, list):
        return expression
    word, *operands = expression

    def value(operand: Any) -> Any:
        return evaluate(operand, values, field, base, variables)

    match word:
        case "lit":
            return operands[0]
        case "given":
            if operands[0] in values:
                return values[operands[0]]
            return value(operands[1]) if operands[1:] else ABSENT
        case "absent":
            return ABSENT
        case "field" if field:
            return field(operands[0])
        case "base" if base:
            found = base(operands[0])
            return value(operands[1]) if found is ABSENT else found
        case "var" if variables:
            return variables[operands[0]]
        case "unknown":
            raise MissingFact(operands[0])
        case "if":
            return value(operands[1] if value(operands[0]) else operands[2])
        case "none" | "else":
            found = value(operands[0])
            return value(operands[1]) if found is (None if word == "none" else ABSENT) else found
        case "last":
            present = [key for key in values if key in operands[1:]]
            return values[present[-1]] if present else value(operands[0])
        case "some":
            found = value(operands[0])
            if found is None or found is ABSENT:
                return found
            return evaluate(operands[1], values, field, base, {**(variables or {}), "it": found})
        case "and" | "or":
            found = value(operands[0])
            return found if bool(found) == (word == "or") else value(operands[1])
        case "completed" if base:
            completes = base(COMPLETES)
            if completes not in {"", "yes"}:
                raise MissingFact("what Transformers makes of RoPE parameters")
            return value(operands[1] if completes else operands[0])
        case "each":
            return _each(expression, values, field, base, variables)
        case "rope":
            return _rope(operands, value)
    try:
        return FUNCTIONS[word](*map(value, operands))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise MissingFact(f"what the config class makes of these values ({word})") from None


def _each(
    expression: list[Any],
    values: Mapping[str, Any],
    field: Resolver | None,
    base: Resolver | None,
    variables: Mapping[str, Any] | None,
) -> list[Any]:
    over, names, body, condition = expression[1:]
    found = evaluate(over, values, field, base, variables)
    if not isinstance(found, list | tuple | dict | str | set | frozenset):
        raise MissingFact("a list that the config class goes through")
    if len(found) > MAX_ELEMENTS:
        raise MissingFact(f"what the config class makes of a list of {len(found)}")
    result = []
    for element in found:
        bound = {names: element} if isinstance(names, str) else dict(zip(names[1], element, strict=True))
        inner = {**(variables or {}), **bound}
        if evaluate(condition, values, field, base, inner):
            result.append(evaluate(body, values, field, base, inner))
    return result


def _rope(operands: list[Any], value: Callable[[Any], Any]) -> dict[str, Any]:
    """One set of RoPE parameters with what it lacks. Those of several kinds of layers are not put together here."""
    given, theta, partial, original, positions, kind = operands
    stated = value(given)
    if stated is not None and stated is not ABSENT and not isinstance(stated, Mapping):
        raise MissingFact("RoPE parameters that are an object")
    parameters = dict(stated or {})
    if any(isinstance(part, Mapping) for part in parameters.values()):
        raise MissingFact("RoPE parameters of each kind of layer")
    default = value(theta)
    if not parameters and default is None:
        return parameters
    parameters.setdefault("rope_theta", default)
    factor = value(partial)
    if factor is not None and factor is not ABSENT and parameters.setdefault("partial_rotary_factor", factor) != factor:
        raise MissingFact("partial_rotary_factor, which has two values")
    parameters.setdefault("rope_type", parameters.get("type", "default"))
    if parameters["rope_type"] == "default" and kind:
        parameters["rope_type"] = kind
    if parameters["rope_type"] in SCALED_FROM_ORIGINAL:
        own = value(original)
        if own is not ABSENT:
            parameters["original_max_position_embeddings"] = own
        elif "original_max_position_embeddings" not in parameters:
            parameters["original_max_position_embeddings"] = value(positions)
    return parameters
