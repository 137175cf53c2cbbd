"""One release's parser, built again from what its source says of each flag (``engine.serve``), so that each argument is
taken, or refused, as there. Source: FlexibleArgumentParser (vllm/utils/argparse_utils.py, or utils/__init__.py).
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from specfix.deployment.json_text import DEPTH_LIMIT, depth_exceeds, parse_object, refuse_surrogates, show
from specfix.engines.facts.serving import Flag, ServeFacts
from specfix.errors import CannotCheck

JSON_OBJECT = re.compile(r"\s*{.*}\s*", re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
TOO_DEEP = f"it is nested more than {DEPTH_LIMIT} levels deep"
UNKNOWN = "\N{REPLACEMENT CHARACTER}"  # stands for a value that is known only where it runs


class Refused(Exception):
    pass


class _Choices(tuple[Any, ...]):
    """What a flag may be, or something that is known only where it runs."""

    def __contains__(self, value: object) -> bool:
        return value == UNKNOWN or super().__contains__(value)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(message)


_parsers: list[tuple[ServeFacts, argparse.ArgumentParser]] = []  # the last one that was made, of a gate's launches


def parser_of(facts: ServeFacts) -> argparse.ArgumentParser:
    """The release's parser. What is not given sets nothing."""
    for made_of, parser in _parsers:
        if made_of is facts:
            return parser
    parser = make_parser(facts)
    _parsers[:] = [(facts, parser)]
    return parser


def make_parser(facts: ServeFacts) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="vllm serve",
        add_help=False,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=facts.abbreviations is not False,
    )
    for name, flag in (facts.flags or {}).items():
        add_flag(parser, name, flag, facts)
    return parser


def add_flag(parser: argparse.ArgumentParser, name: str, flag: Flag, facts: ServeFacts) -> None:
    spellings = [f"--{name}", *flag.aliases]
    common: dict[str, Any] = {"dest": flag.dest or name.replace("-", "_")}
    if flag.kind == "switch":
        if flag.negation:
            parser.add_argument(*spellings, action=argparse.BooleanOptionalAction, **common)
        else:
            constant = True if flag.const is None else flag.const
            parser.add_argument(*spellings, action="store_const", const=constant, **common)
    else:
        more: dict[str, Any] = {"type": converter(flag, facts)}
        if flag.appends:
            more["action"] = "append"
        if flag.nargs is not None:
            more["nargs"] = flag.nargs
        if flag.nargs == "?":
            more["const"] = flag.const
        if flag.choices is not None:
            more["choices"] = _Choices(flag.choices)
        parser.add_argument(*spellings, **common, **more)
    for inverse in flag.inverses:
        parser.add_argument(f"--{inverse}", action="store_const", const=False, **common)


def converter(flag: Flag, facts: ServeFacts) -> Callable[[str], Any]:
    """What the release makes of a flag's text. Raises ValueError, or ArgumentTypeError, for one that it refuses."""

    def convert(text: str) -> Any:
        if text == UNKNOWN:
            return text
        if flag.none and text in {"", "None"}:
            return None
        if text in flag.words:
            return flag.words[text]
        match flag.kind:
            case "int":
                return int(text)
            case "float":
                return float(text)
            case "size":
                return size(text, facts)
            case "bool":
                return bool(text)
            case "comma_list":
                return [int(part) if part.isdigit() else part for part in text.split(",")]
            case "json":
                return json_value(text)
            case "json_or_str":
                return json_value(text) if JSON_OBJECT.fullmatch(text) else text
            case "config":
                return json_object(text, facts)
            case _:
                return text.lower().replace("-", "_") if flag.folds else text

    convert.__name__ = flag.kind or "text"  # in argparse's message
    return convert


def size(text: str, facts: ServeFacts) -> int:
    """A number, or one with a suffix."""
    text = text.strip()
    factor = (facts.sizes or {}).get(text[-1:])
    if factor is None or not NUMBER.fullmatch(text[:-1]):
        return int(text)
    if text[-1] not in (facts.size_fractions or ""):
        return int(text[:-1]) * factor
    number = float(text[:-1]) * factor
    if math.isinf(number):
        raise ValueError(f"{show(text)} is no number of this world")
    return int(number)


def json_value(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"{show(text)} is not valid JSON ({error})") from None
    if depth_exceeds(value, DEPTH_LIMIT):
        raise argparse.ArgumentTypeError(TOO_DEEP)
    try:
        refuse_surrogates(value, "the value")
    except CannotCheck as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return value


def json_object(text: str, facts: ServeFacts) -> dict[str, Any]:
    """A config; some releases take numbers with a suffix in it, as in ``{"size": 2k}``."""
    if facts.json_sizes:
        text = re.sub(
            r"(?<=[:\[,])\s*(\d+(?:\.\d+)?[a-zA-Z])\s*(?=[,}\]])", lambda match: str(size(match[1], facts)), text
        )
    try:
        return parse_object(text, "the value")
    except CannotCheck as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def appends(facts: ServeFacts, dest: str) -> bool:
    return any(
        flag.appends and (flag.dest or name.replace("-", "_")) == dest for name, flag in (facts.flags or {}).items()
    )


def spelling(text: str, facts: ServeFacts) -> str:
    """A flag as the parser knows it: dashes for underscores, ``-O3`` in full."""
    if text.startswith("--") and facts.underscores:
        name, equals, value = text.partition("=")
        return f"{name.replace('_', '-')}{equals}{value}"
    if facts.level_flag and re.fullmatch(r"-O.+", text):
        return f"--{facts.level_flag}={text[2:].removeprefix('=')}"
    return text
