"""What `vllm serve` takes, and what the engine makes of environment variables, by the engine's own word.

Prints {"flags": {name: …}, "positional", "rules": {…}, "classes": {name: {"keys": […], "refuses": …}}, "variables":
{name: {"default", "reads": {text: value}}}}. A
flag tells its spellings, which of them turn it off, what argparse holds of it, and what its conversion makes of each
of TEXTS. A value that is no JSON is {"made of": {…}} for a config, {"no JSON": its repr} else; REFUSED is a text that
is not taken.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

REFUSED = "<refused>"
TEXTS = (
    *("", "None", "none", "auto", "0", "1", "2", "3", "12", "-1", "1.5", "2k", "2K", "1.5k", "1.5K", "3g", "2t", "2x"),
    *("x", "Xy-z", "true", "{}", '{"a": 1}', '{"a": 2k}', "1,x", "[1]", "null"),
)
VALUES = ("0", "1", "true", "false", "True", "7", "1.5", "Ab,cd", "auto", "/some/path", "~/path", '{"a": 1}', "")
OTHERS = ("HOME", "PATH", "LD_LIBRARY_PATH")  # of the host: the interpreter cannot run without the last two


def main() -> None:
    for name in [name for name in os.environ if name.startswith(("VLLM_", "XDG_"))]:
        del os.environ[name]
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    sys.argv = ["vllm", "serve"]
    whole, serve = parsers()
    os.environ.pop("VLLM_LOGGING_LEVEL")
    told = {
        "flags": flags(serve),
        "positional": [action.dest for action in serve._actions if not action.option_strings],
        "rules": rules(whole),
        "classes": classes(),
        "variables": variables(),
    }
    print(json.dumps(told))


def parsers() -> tuple[Any, Any]:
    """That of `vllm`, and that of `vllm serve` in it."""
    command = importlib.import_module("vllm.entrypoints.cli.serve")
    whole = command.FlexibleArgumentParser(prog="vllm")
    return whole, command.ServeSubcommand().subparser_init(whole.add_subparsers(dest="subparser"))


def plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return plain(value.value) if isinstance(value, str | int) else value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(part) for part in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return made_of(value)
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    return {"no JSON": repr(value)}


def made_of(config: Any) -> dict[str, Any]:
    """The fields in which a config differs from one that is made of nothing."""
    try:
        usual, again = type(config)(), type(config)()
    except Exception:
        return {"no JSON": repr(config)}
    names = [field.name for field in dataclasses.fields(config) if field.init]
    names = [name for name in names if getattr(usual, name) == getattr(again, name)]  # not one made at random
    return {
        "made of": {
            name: plain(getattr(config, name)) for name in names if getattr(config, name) != getattr(usual, name)
        },
        "class": type(config).__name__,
    }


def flags(parser: argparse.ArgumentParser) -> dict[str, Any]:
    spellings: dict[int, list[str]] = {}
    actions: dict[int, argparse.Action] = {}
    for spelling, action in parser._option_string_actions.items():
        spellings.setdefault(id(action), []).append(spelling)
        actions[id(action)] = action
    told = {}
    for key, action in actions.items():
        if isinstance(action, argparse._HelpAction):
            continue
        told[next(each[2:] for each in spellings[key] if each.startswith("--"))] = {
            "spellings": sorted(spellings[key]),
            "off": sorted(turned_off(parser, action, spellings[key])),
            "nargs": action.nargs,
            "const": plain(action.const),
            "choices": None if action.choices is None else [plain(choice) for choice in action.choices],
            "default": None if action.default is argparse.SUPPRESS else plain(action.default),
            "dest": action.dest,
            "appends": isinstance(action, argparse._AppendAction),
            "deprecated": action in getattr(parser, "_deprecated", ()),
            "reads": None if action.nargs == 0 else {text: converted(action, text) for text in TEXTS},
        }
    return told


def turned_off(parser: argparse.ArgumentParser, action: argparse.Action, spellings: list[str]) -> list[str]:
    if not isinstance(action, argparse.BooleanOptionalAction):
        return []
    off = []
    for spelling in spellings:
        space = argparse.Namespace()
        action(parser, space, None, spelling)
        if getattr(space, action.dest) is False:
            off.append(spelling)
    return off


def converted(action: argparse.Action, text: str) -> Any:
    """Conversion alone, without the choices."""
    convert = action.type if callable(action.type) else str
    try:
        return plain(convert(text))
    except (ValueError, TypeError, argparse.ArgumentTypeError):
        return REFUSED


def rules(whole: Any) -> dict[str, Any]:
    """What some commands are read as."""

    def read(field: str, *arguments: str) -> Any:
        try:
            return plain(getattr(whole.parse_args(["serve", *arguments]), field))
        except (SystemExit, Exception):
            return REFUSED

    def yaml(field: str, text: str) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "serve.yaml"
            file.write_text(text)
            return read(field, "m", "--config", str(file))

    level = read("optimization_level", "m", "-O3")
    usual = read("optimization_level", "m")
    return {
        "abbreviations": read("max_model_len", "m", "--max-model-l", "5") == 5,
        "underscores": read("max_model_len", "m", "--max_model_len", "5") == 5,
        "dotted": read("speculative_config", "m", "--speculative-config.a.b", "5") == {"a": {"b": 5}},
        "dotted_lists": read("speculative_config", "m", "--speculative-config.a+", "x") == {"a": ["x"]},
        "dotted_sizes": read("speculative_config", "m", "--speculative-config.a", "2k") == {"a": 2000},
        "level_flag": "optimization-level" if level != usual else None,
        "model_flag": "x/y" in (read("model_tag", "--model", "x/y"), read("model", "--model", "x/y")),
        "model_first": read("model_tag", "m", "--served-model-name=a") == "m"
        and read("model_tag", "--served-model-name=a", "m") is REFUSED,
        "yaml_nested": yaml("additional_config", "additional-config: {a: 1}") == {"a": 1},
        "yaml_false": [
            yaml("enable_prefix_caching", "enable-prefix-caching: false"),
            yaml("use_tqdm_on_load", "use-tqdm-on-load: false"),
        ]
        == [False, False],
    }


def classes() -> dict[str, Any]:
    """Each config class: which names pydantic takes of it, asked one by one, and whether it refuses another."""
    from pydantic import TypeAdapter, ValidationError

    def refused(cls: type, name: str) -> bool:
        try:
            TypeAdapter(cls).validate_json(json.dumps({name: {"no": "such value"}}))
        except ValidationError as error:
            kinds = {each["type"] for each in error.errors() if each["loc"] == (name,)}
            return "unexpected_keyword_argument" in kinds
        except Exception:  # the class's own code, on a value that makes no sense
            return False
        return False

    told = {}
    for name, cls in vars(importlib.import_module("vllm.config")).items():
        if dataclasses.is_dataclass(cls) and isinstance(cls, type):
            if hasattr(cls, "__post_init__"):  # what a config does once its keys are taken: look a model up, say
                cls.__post_init__ = lambda self, *given: None
            names = {field.name for field in dataclasses.fields(cls)} | set(cls.__init__.__annotations__)
            taken = sorted(each for each in names - {"return"} if not refused(cls, each))
            told[name] = {"keys": taken, "refuses": refused(cls, "no_such_key")}
    return told


def variables() -> dict[str, Any]:
    """Each variable of the table: its default, and what it makes of VALUES and of its choices."""
    table = importlib.import_module("vllm.envs").environment_variables
    host = {name: os.environ[name] for name in OTHERS if name in os.environ}

    def reads(name: str, text: str | None) -> Any:
        os.environ.clear()
        os.environ.update({} if name in host else host)
        if text is not None:
            os.environ[name] = text
        try:
            return plain(table[name]())
        except Exception:
            return REFUSED

    told = {}
    for name in table:
        if name == "LD_LIBRARY_PATH":
            continue
        os.environ.clear()
        os.environ.update(host)
        told[name] = {"default": reads(name, None), "reads": {text: reads(name, text) for text in VALUES}}
    os.environ.update(host)
    return told


if __name__ == "__main__":
    main()
