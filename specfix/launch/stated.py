"""What the arguments of a launch are in Serving's terms."""

from __future__ import annotations

import difflib
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from specfix.deployment import Location, Misfit
from specfix.deployment.expected import LIMIT
from specfix.deployment.json_text import show
from specfix.deployment.serving import ANY_VARIABLE, AUTO, AUTO_LENGTH, COMMON, COUNTS
from specfix.errors import CannotCheck
from specfix.launch.arguments import Arguments, Given
from specfix.launch.command import Launch
from specfix.launch.words import COMMAND_LINE, Word

if TYPE_CHECKING:
    from specfix.engines import Engine

# flags that say again what a key of the speculative config says
SPECULATIVE_FLAGS = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}
BACKEND_VARIABLE = "VLLM_ATTENTION_BACKEND"
PREFIX = "VLLM_"
TOKENS = "num_speculative_tokens"
WHOLE = re.compile(r"[+-]?\d{1,9}")
VARIABLES_LIMIT = 2_000  # each may be a finding


@dataclass(slots=True)
class Options:
    """What becomes of the arguments, on the way to Serving."""

    values: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, Any] = field(default_factory=dict)
    speculative: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Location] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    misfits: list[Misfit] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # of what is taken from elsewhere, for the report's first line


def options_of(arguments: Arguments, engine: Engine) -> Options:
    """The server's options in Serving's terms."""
    options = Options()
    given = dict(arguments.options)
    whole = given.pop("speculative_config", None)
    for name, option in given.items():
        if name in SPECULATIVE_FLAGS:
            continue
        options.places[name] = placed(option.word, f"--{name.replace('_', '-')}")
        if option.unknown is not None:
            options.unknown[name] = option.unknown
        elif name == "max_model_len" and option.value == AUTO_LENGTH:
            options.unknown[name] = AUTO
        elif name in COUNTS and not sensible(option.value):
            message = f"--{name.replace('_', '-')} is {show(option.value)}"
            options.misfits.append(Misfit(message, options.places[name], option=name))
        elif name in COMMON:
            options.values[name] = option.value
        else:
            options.flags[name] = option.value
    if whole is not None:
        speculative_config(whole, options, engine)
    for name, key in SPECULATIVE_FLAGS.items():
        one, flag = given.get(name), f"--{name.replace('_', '-')}"
        if one is None or (one.value is None and one.unknown is None):
            continue
        place = options.places[name] = placed(one.word, flag)
        if whole is not None and isinstance(whole.value, dict) and key in {*whole.value, *whole.parts}:
            message = f"{engine} takes {flag} or {key} in the speculative config, not both"
            options.misfits.append(Misfit(message, place))
        else:
            one_key(key, one.value, one.unknown, place, options, engine)
    return options


def speculative_config(given: Given, options: Options, engine: Engine) -> None:
    """The keys of the speculative config, each at the place of the whole."""
    place = placed(given.word, "--speculative-config")
    options.places["speculative_config"] = place
    if given.unknown is not None and given.value is None:
        options.unknown["speculative_config"] = given.unknown
        return
    value = given.value
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if value is None:  # as if it were not given
        del options.places["speculative_config"]
        return
    if not isinstance(value, dict):
        options.misfits.append(Misfit(f"--speculative-config is {show(value)} where {engine} takes an object", place))
        return
    for key, held in value.items():
        one_key(key.replace("-", "_"), held, None, place, options, engine)
    for key, text in given.parts.items():
        one_key(key.replace("-", "_"), None, text, place, options, engine)


def one_key(key: str, value: Any, unknown: str | None, place: Location, options: Options, engine: Engine) -> None:
    """One key of the speculative config."""
    name = key if key in ("method", TOKENS) else f"speculative.{key}"
    options.places[name] = place
    if key == TOKENS:
        value = as_whole(value, engine)
    if unknown is not None:
        options.unknown[name] = unknown
    elif key == "method" and value is not None and value not in (engine.methods.methods or (value,)):
        near = difflib.get_close_matches(str(value), engine.methods.methods, 1)
        options.misfits.append(
            Misfit(f"{engine} knows no speculative method {show(value)}", place, near[0] if near else None, option=key)
        )
    elif key == TOKENS and value is not None and not sensible(value):
        options.misfits.append(Misfit(f"num_speculative_tokens is {show(value)}", place, option=key))
    elif name == key:
        options.values[key] = value
    else:
        options.speculative[key] = value


def as_whole(value: Any, engine: Engine) -> Any:
    """A number of tokens as pydantic reads it, of a release that has it read: "3", 3.0 and true are whole numbers."""
    key = (engine.speculative.keys or {}).get(TOKENS)
    if key is None or not key.validated:
        return value
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return int(value) if isinstance(value, str) and WHOLE.fullmatch(value.strip()) else value


def sensible(value: Any) -> bool:
    return type(value) is int and 1 <= value <= LIMIT


def variables(launch: Launch, options: Options, engine: Engine) -> None:
    """Where variables stand, and those of the engine's that this release does not read."""
    env, known = launch.env, engine.variables.variables
    if len(env) > VARIABLES_LIMIT:
        file = next(iter(env.values())).place.file
        raise CannotCheck(f"{file} sets more than the {VARIABLES_LIMIT:,} variables that are read")
    if launch.env_from:
        options.unknown[ANY_VARIABLE] = launch.env_from[0]
    for name, word in env.items():
        options.places[name] = placed(word, name) if word.place.file != COMMAND_LINE else Location("environment", name)
        if word.unknown is not None:
            options.unknown[name] = word.unknown
        if name.startswith(PREFIX) and known is not None and name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.8)
            message = f"{engine} reads no variable {name}"
            options.misfits.append(Misfit(message, options.places[name], near[0] if near else None, ignored=True))
    backend = env.get(BACKEND_VARIABLE)
    if backend is not None and engine.serve.backend_variable and "attention_backend" not in options.places:
        options.places["attention_backend"] = options.places[BACKEND_VARIABLE]
        if backend.unknown:
            options.unknown["attention_backend"] = backend.unknown
        else:
            options.values["attention_backend"] = backend.text
    elif launch.env_from and engine.serve.backend_variable and "attention_backend" not in options.places:
        options.unknown["attention_backend"] = launch.env_from[0]


def placed(word: Word, pointer: str) -> Location:
    """The place of an option that ``word`` names."""
    return replace(word.place, pointer=pointer)
