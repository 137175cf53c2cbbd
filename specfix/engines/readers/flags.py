"""The flags of `vllm serve`, and how its command is read.

The release's own code makes the parser (``entrypoints/cli/serve.py``), run by the interpreter; what argparse then
holds is written down. What a value is read as is found by trying: each flag's own conversion is given a few texts.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from specfix.engines.facts.serving import Flag
from specfix.engines.source.interpreter.run import Interpreter
from specfix.engines.source.interpreter.standins import Made, Outside, UndecidedError, Unknown, said
from specfix.engines.source.tree import SourceTree

COMMAND = "vllm.entrypoints.cli.serve"
SUFFIXES = "kKmMgGtT"
WORDS = ("auto", "none", "0", "1", "2", "3")
DICTIONARY = "speculative-config"  # a flag that takes JSON in every release
REFUSALS = (ValueError, TypeError, argparse.ArgumentTypeError, argparse.ArgumentError)  # as argparse takes them


class _Refused:
    """What a conversion that takes no such text gives."""


REFUSED = _Refused()


def attempt(function: Callable[..., Any], *given: Any) -> Any:
    """What ``function`` gives, or REFUSED where it does not take that. UndecidedError where it cannot be told."""
    try:
        value = function(*given)
    except UndecidedError:
        raise
    except REFUSALS:
        return REFUSED
    except (Exception, SystemExit) as error:
        raise UndecidedError(said(error)) from error
    if isinstance(value, Unknown):
        raise UndecidedError(value.reason)
    return value


@dataclass(frozen=True)
class Command:
    """The parser of `vllm` with its sub-command `serve`."""

    whole: argparse.ArgumentParser
    serve: argparse.ArgumentParser
    interpreter: Interpreter

    def read(self, *arguments: str) -> Any:
        """What `vllm serve ARGUMENTS` is read as, or REFUSED. UndecidedError where that cannot be told."""
        return attempt(self.whole.parse_args, ["serve", *arguments])

    def read_yaml(self, document: Mapping[str, Any]) -> Any:
        """The same of `vllm serve MODEL --config FILE`, where the file holds ``document``."""
        self.interpreter.document = document
        return self.read("some/model", "--config", "some.yaml")


def command(tree: SourceTree) -> Command:
    """UndecidedError where the source does not tell all of it."""
    interpreter = Interpreter(tree)
    parser = interpreter.name(COMMAND, "FlexibleArgumentParser")
    serve = interpreter.name(COMMAND, "ServeSubcommand")
    for needed in (parser, serve):
        if isinstance(needed, Unknown):
            raise UndecidedError(needed.reason)
    if not (isinstance(parser, type) and issubclass(parser, argparse.ArgumentParser) and isinstance(serve, type)):
        raise UndecidedError(f"{COMMAND} makes no parser that could be read")
    made = attempt(_build, parser, serve)
    if made is REFUSED:
        raise UndecidedError(f"{COMMAND} could not be run")
    whole, sub = made
    if not isinstance(sub, argparse.ArgumentParser):
        raise UndecidedError(getattr(sub, "reason", f"{COMMAND} makes no parser"))
    return Command(whole, sub, interpreter)


def _build(parser: Any, serve: type) -> tuple[Any, Any]:
    whole = parser(prog="vllm")
    return whole, type.__call__(serve).subparser_init(whole.add_subparsers(dest="subparser", prog="vllm"))


def flags(parser: argparse.ArgumentParser, unknown: dict[str, str]) -> dict[str, Flag]:
    """Each flag by its first long spelling. ``unknown`` gets what could not be read of one."""
    spellings: dict[argparse.Action, list[str]] = {}
    for spelling, action in parser._option_string_actions.items():
        spellings.setdefault(action, []).append(spelling)
    made = {}
    for action, all_of_it in spellings.items():
        if isinstance(action, argparse._HelpAction):
            continue
        name = next(spelling[2:] for spelling in all_of_it if spelling.startswith("--"))
        made[name] = _flag(name, action, all_of_it, parser, unknown)
    return dict(sorted(made.items()))


def positional(parser: argparse.ArgumentParser) -> str | None:
    return next((action.dest for action in parser._actions if not action.option_strings), None)


def _flag(
    name: str,
    action: argparse.Action,
    spellings: list[str],
    parser: argparse.ArgumentParser,
    unknown: dict[str, str],
) -> Flag:
    def known(field: str, value: Any) -> Any:
        try:
            return as_json(value)
        except UndecidedError as error:
            unknown[f"serve.flags.{name}.{field}"] = str(error)
            return None

    off = _turned_off_by(action, spellings, parser)
    on = [spelling for spelling in spellings if spelling not in off]
    plain = [f"--no-{spelling[2:]}" for spelling in on if spelling.startswith("--")]
    negation = bool(off) and set(plain) <= set(off)
    kind: str | None = "switch"
    more: dict[str, Any] = {}
    if action.nargs != 0:
        convert = action.type if callable(action.type) else str
        try:
            kind, more = _kind(convert)
        except UndecidedError as error:
            kind, unknown[f"serve.flags.{name}.kind"] = None, str(error)
    default = None if action.default is argparse.SUPPRESS else action.default
    choices = known("choices", action.choices)
    return Flag(
        kind=kind,
        aliases=tuple(spelling for spelling in on if spelling != f"--{name}"),
        negation=negation,
        inverses=tuple(spelling[2:] for spelling in off if not (negation and spelling in plain)),
        nargs=action.nargs if action.nargs != 0 else None,
        const=known("const", action.const) if action.nargs == "?" else None,
        choices=None if choices is None else tuple(choices),
        appends=isinstance(action, argparse._AppendAction),
        default=known("default", default),
        dest=action.dest if action.dest != name.replace("-", "_") else None,
        deprecated=action in getattr(parser, "_deprecated", ()),
        **more,
    )


def _turned_off_by(action: argparse.Action, spellings: list[str], parser: argparse.ArgumentParser) -> list[str]:
    """The spellings of a switch that set it to False."""
    if not isinstance(action, argparse.BooleanOptionalAction):
        return []
    found = []
    for spelling in spellings:
        space = argparse.Namespace()
        action(parser, space, None, spelling)
        if getattr(space, action.dest) is False:
            found.append(spelling)
    return found


def _kind(convert: Callable[[str], Any]) -> tuple[str, dict[str, Any]]:
    """The kind of value, and further fields of the flag."""
    made, word = attempt(convert, '{"a": 1}'), attempt(convert, "Xy-z")
    more: dict[str, Any] = {}
    if attempt(convert, "None") is None and attempt(convert, "") is None:
        more["none"] = True
    if isinstance(made, Made):
        kind, more["config"] = "config", made.kind.__name__
    elif isinstance(made, dict):
        kind = "json_or_str" if word == "Xy-z" else "json"
    elif isinstance(attempt(convert, "1,x"), list):
        kind = "comma_list"
    elif isinstance(word, str):
        kind, more["folds"] = "str", word == "xy_z"
    elif attempt(convert, "2k") == 2000:
        kind = "size"
    elif attempt(convert, "2") == 2:
        kind = "float" if attempt(convert, "1.5") == 1.5 else "int"
    elif convert is bool:
        kind = "bool"
    else:
        raise UndecidedError("its conversion takes none of the texts that were tried")
    expected: Mapping[str, Callable[[str], Any]] = {"int": int, "size": int, "float": float, "str": str}
    words = {}
    for text in WORDS if kind in {"config", *expected} else ():
        value = attempt(convert, text)
        plain = attempt(expected[kind], text) if kind in expected else REFUSED
        if value is not REFUSED and value != plain and not (kind == "str" and more["folds"]):
            words[text] = as_json(value)
    return kind, more | ({"words": words} if words else {})


def as_json(value: Any) -> Any:
    """The value as JSON holds it. UndecidedError where it is none that can be written."""
    if isinstance(value, Unknown):
        raise UndecidedError(value.reason)
    if isinstance(value, enum.Enum):
        return as_json(value.value) if isinstance(value, str | int) else value.name
    if value is None or isinstance(value, bool | int | float | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(as_json(part) for part in value)
    if isinstance(value, dict):
        return {str(key): as_json(part) for key, part in value.items()}
    if isinstance(value, Made) and not value.arguments:
        return {name: as_json(part) for name, part in value.named.items()}
    if isinstance(value, Outside):
        raise UndecidedError(f"{value.path} is not in this source")
    raise UndecidedError(f"a {type(value).__name__} is no JSON")


def rules(command: Command, known: Mapping[str, Flag], unknown: dict[str, str]) -> dict[str, Any]:
    """How a command is read, by fact of ServeFacts: found by reading some."""
    tried: dict[str, Callable[[], Any]] = {
        "yaml_nested": lambda: _yaml_nested(command),
        "yaml_false": lambda: _yaml_false(command, known),
        "abbreviations": lambda: _sets(command, ("--max-model-l", "5"), "max_model_len", 5),
        "underscores": lambda: _sets(command, ("--max_model_len", "5"), "max_model_len", 5),
        "dotted": lambda: _sets(command, (f"--{DICTIONARY}.a.b", "5"), DICTIONARY, {"a": {"b": 5}}),
        "dotted_lists": lambda: _sets(command, (f"--{DICTIONARY}.a+", "x"), DICTIONARY, {"a": ["x"]}),
        "dotted_sizes": lambda: _sets(command, (f"--{DICTIONARY}.a", "2k"), DICTIONARY, {"a": 2000}),
        "json_sizes": lambda: _json_sizes(command.serve, known),
        "level_flag": lambda: _level_flag(command, known),
        "model_flag": lambda: _takes_model_flag(command),
        "model_first": lambda: _wants_model_first(command),
        "sizes": lambda: _sizes(command.serve, known),
        "size_fractions": lambda: "".join(suffix for suffix in SUFFIXES if _size(command.serve, known, "1.5" + suffix)),
    }
    found = {}
    for fact, try_it in tried.items():
        try:
            found[fact] = try_it()
        except UndecidedError as error:
            unknown[f"serve.{fact}"] = str(error)
    return found


def _sets(command: Command, arguments: tuple[str, ...], flag: str, value: Any) -> bool:
    space = command.read("some/model", *arguments)
    return space is not REFUSED and getattr(space, flag.replace("-", "_"), None) == value


def _action(parser: argparse.ArgumentParser, known: Mapping[str, Flag], kind: str) -> Iterator[Callable[[str], Any]]:
    """The conversions of flags of one kind."""
    for name, flag in known.items():
        convert = parser._option_string_actions[f"--{name}"].type
        if flag.kind == kind and callable(convert):
            yield convert


def _json_sizes(parser: argparse.ArgumentParser, known: Mapping[str, Flag]) -> bool:
    return any(attempt(convert, '{"a": 2k}') is not REFUSED for convert in _action(parser, known, "config"))


def _size(parser: argparse.ArgumentParser, known: Mapping[str, Flag], text: str) -> int | None:
    for convert in _action(parser, known, "size"):
        value = attempt(convert, text)
        return None if value is REFUSED else int(value)
    raise UndecidedError("no flag takes a size")


def _sizes(parser: argparse.ArgumentParser, known: Mapping[str, Flag]) -> dict[str, int]:
    return {suffix: factor for suffix in SUFFIXES if (factor := _size(parser, known, "1" + suffix)) is not None}


def _level_flag(command: Command, known: Mapping[str, Flag]) -> str | None:
    """The flag whose value -O3 changes."""
    plain, level = command.read("some/model"), command.read("some/model", "-O3")
    if plain is REFUSED:
        raise UndecidedError("no command could be read")
    for name, flag in known.items() if level is not REFUSED else ():
        dest = flag.dest or name.replace("-", "_")
        before, after = getattr(plain, dest, None), getattr(level, dest, None)
        with contextlib.suppress(UndecidedError):
            if as_json(before) != as_json(after):
                return name
    return None


def _yaml_nested(command: Command) -> bool:
    space = command.read_yaml({DICTIONARY: {"a": {"b": 5}}})
    return space is not REFUSED and getattr(space, DICTIONARY.replace("-", "_"), None) == {"a": {"b": 5}}


def _yaml_false(command: Command, known: Mapping[str, Flag]) -> bool:
    """Some switch that is not off by default is turned off."""
    for name, flag in known.items():
        if flag.negation and flag.default is not False:
            space = command.read_yaml({name: False})
            return space is not REFUSED and getattr(space, flag.dest or name.replace("-", "_")) is False
    raise UndecidedError("no switch is on by default")


def _takes_model_flag(command: Command) -> bool:
    space = command.read("--model", "some/model")
    return space is not REFUSED and "some/model" in (getattr(space, "model_tag", None), getattr(space, "model", None))


def _wants_model_first(command: Command) -> bool:
    """Whether what is taken behind the model is refused before it."""
    name = "--served-model-name=a"
    return command.read("some/model", name) is not REFUSED and command.read(name, "some/model") is REFUSED
