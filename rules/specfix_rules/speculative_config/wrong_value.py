"""CFG002: a value that the key does not take."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.engines.facts.speculative import Key
from specfix.errors import MissingFact, NotApplicable, known

SWITCHES = {"0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes"}
NEAR = 3 / 4  # how alike two names must be for one to be meant by the other
PLACES_OF_ITS_OWN = frozenset({"draft_tensor_parallel_size"})  # NUM and PAR look at these


@rule(
    "CFG002",
    "wrong-value",
    severity="error",
    evidence=["vllm/config/speculative.py: SpeculativeConfig"],
)
def wrong_value(serving: Serving, engine: Engine) -> Iterator[Finding]:
    """A value in the speculative config is of another type, or outside of what the release takes there."""
    if not serving.speculative:
        raise NotApplicable("no other key of the speculative config is given")
    keys = known(engine.speculative.keys, f"the keys of the speculative config of {engine}")
    unread: list[str] = []
    for name, value in serving.speculative.items():
        key = keys.get(name) or keys.get(name.replace("-", "_") if engine.speculative.dashes else name)
        if key is None or name in PLACES_OF_ITS_OWN:
            continue
        taken = takes(key, value)
        if taken is None:
            if value is not None and key.validated and key.type not in {*TYPES, None, "Any"}:
                unread.append(f"what a {key.type} may be, for {name}")
            continue
        near = nearest(key, value)
        yield Finding(
            f"{name} is {show(value)} in the speculative config; {engine} takes {taken} there, and does not start.",
            serving.at(f"speculative.{name}"),
            "config",
            repair=Repair(
                "unsafe",
                f"say {show(near)}",
                ("speculative_config",),
                (("speculative_config", name, near),),
            )
            if near is not None
            else Repair("manual", f"give {taken}", ("speculative_config",)),
        )
    for what in unread:
        raise MissingFact(what)


def takes(key: Key, value: Any) -> str | None:
    """What the key takes, in words, where ``value`` is none of it; None where it may be."""
    if not key.validated or key.type in {None, "Any"}:
        return None
    if value is None:
        return None if key.nullable or key.default is None else kind_words(str(key.type))
    if key.parsed:  # a name in any case; "auto" is none
        names = [str(choice) for choice in key.choices or ()]
        fits = not names or (isinstance(value, str) and value.upper() in {*names, "AUTO"})
        return None if fits else one_of(names)
    test = TYPES.get(str(key.type))
    if test is not None and not test(value):
        return one_of(list(key.choices)) if key.choices else kind_words(str(key.type))
    if key.choices is not None and value not in key.choices:
        return one_of(list(key.choices))
    if key.type in {"int", "float"} and out_of_bounds(key, as_float(value)):
        return bounds_words(key)
    return None


def is_number(value: Any) -> bool:
    """What the engine's types read as a number: texts of one too."""
    if isinstance(value, str):
        try:
            return math.isfinite(float(value))
        except ValueError:
            return False
    return isinstance(value, int | float)


def is_whole(value: Any) -> bool:
    return is_number(value) and as_float(value).is_integer()


def as_float(value: Any) -> float:
    """A number as a float; one of hundreds of digits as the largest or the smallest."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


def is_switch(value: Any) -> bool:
    if isinstance(value, str):
        return value.lower() in SWITCHES
    return isinstance(value, int | float) and value in (0, 1)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def list_of(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(test, value))


TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "int": is_whole,
    "float": is_number,
    "bool": is_switch,
    "str": is_text,
    "list[int]": list_of(is_whole),
    "list[float]": list_of(is_number),
    "list[str]": list_of(is_text),
}
WORDS: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "list[int]": "a list of whole numbers",
    "list[float]": "a list of numbers",
    "list[str]": "a list of texts",
}


def kind_words(kind: str) -> str:
    return WORDS.get(kind, kind)


def one_of(choices: list[Any]) -> str:
    shown = [str(choice) for choice in choices[:12]]
    return f"one of {', '.join(shown)}" + (" …" if len(choices) > len(shown) else "")


def out_of_bounds(key: Key, value: float) -> bool:
    return (
        (key.at_least is not None and value < key.at_least)
        or (key.above is not None and value <= key.above)
        or (key.at_most is not None and value > key.at_most)
        or (key.below is not None and value >= key.below)
    )


def bounds_words(key: Key) -> str:
    parts = (("at least", key.at_least), ("above", key.above), ("at most", key.at_most), ("below", key.below))
    return f"{kind_words(str(key.type))} {', '.join(f'{word} {bound:g}' for word, bound in parts if bound is not None)}"


def nearest(key: Key, value: Any) -> str | None:
    """The choice whose name is nearly this one."""
    names = [choice for choice in key.choices or () if isinstance(choice, str)]
    if not isinstance(value, str):
        return None
    text = value.upper() if key.parsed else value.lower()
    return next(iter(difflib.get_close_matches(text, names, 1, NEAR)), None)
