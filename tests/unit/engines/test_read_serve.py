"""What `vllm serve` takes, read of small source trees whose own code makes the parser."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.serving import Flag, ServeFacts
from specfix.engines.readers.serve import COMMAND_FACTS, read_serve
from specfix.engines.source.tree import SourceTree

SERVE = """
    from vllm.arguments import add_arguments
    from vllm.parsing import FlexibleArgumentParser

    class ServeSubcommand:
        name = "serve"

        def subparser_init(self, subparsers):
            parser = subparsers.add_parser(self.name, help="100%", usage="vllm serve [model_tag]")
            parser.add_argument("model_tag", nargs="?")
            return add_arguments(parser)
    """
PARSING = """
    import argparse
    import json
    import re
    import yaml

    class FlexibleArgumentParser(argparse.ArgumentParser):
        def parse_args(self, args=None, namespace=None):
            if "--config" in args:
                at = args.index("--config")
                args = args[:at] + self.from_file(args[at + 1]) + args[at + 2:]
            return super().parse_args(list(self.rewritten(args)), namespace)

        def rewritten(self, args):
            return [self.with_dashes(arg) for arg in args]

        def with_dashes(self, arg):
            return arg

        def from_file(self, path):
            made = []
            with open(path) as file:
                for key, value in yaml.safe_load(file).items():
                    if isinstance(value, bool):
                        made += self.of_bool(key, value)
                    else:
                        made += ["--" + key, self.text_of(value)]
            return made

        def of_bool(self, key, value):
            return ["--" + key] if value else []

        def text_of(self, value):
            return str(value)
    """
NEWER = """
        def with_dashes(self, arg):
            return re.sub("^--[^.=]*", lambda found: found.group().replace("_", "-"), arg)

        def rewritten(self, args):
            args, made = [self.with_dashes(arg) for arg in args], []
            while args:
                arg, *args = args
                if arg.startswith("--") and "." in arg:
                    flag, key = arg.split(".")
                    value, *args = args
                    made += [flag, json.dumps({key.rstrip("+"): [value] if key.endswith("+") else value})]
                elif arg.startswith("-O"):
                    made += ["--level", arg[2:]]
                else:
                    made.append(arg)
            return made

        def of_bool(self, key, value):
            return ["--" + key] if value else ["--no-" + key]

        def text_of(self, value):
            return json.dumps(value) if isinstance(value, dict) else str(value)
    """
ARGUMENTS = """
    import argparse
    import json
    from dataclasses import MISSING, dataclass, field, fields
    from typing import Literal, get_args, get_origin

    from pydantic import Field, TypeAdapter

    from vllm import envs
    from vllm.platforms import current_platform
    from vllm.sizes import DEFAULT_PORT, size

    Kind = Literal["b", "a"]

    @dataclass
    class Inner:
        depth: int = 3

    @dataclass
    class Config:
        kind: Kind = "a"
        max_model_len: int = Field(default=None, gt=0)
        inner: Inner = field(default_factory=Inner)
        prefix_caching: bool = True
        debug: bool = envs.DEBUG
        port: int = DEFAULT_PORT
        where: str = current_platform.device_type

    def or_none(convert):
        return lambda text: None if text in ("", "None") else convert(text)

    def kwargs_of(cls):
        made = {}
        for each in fields(cls):
            default = each.default if each.default is not MISSING else each.default_factory()
            if each.name == "inner":
                convert = lambda text, cls=each.type: TypeAdapter(cls).validate_json(text)
                made[each.name] = {"default": default, "type": convert}
            elif each.type is bool:
                made[each.name] = {"default": default, "action": argparse.BooleanOptionalAction}
            elif get_origin(each.type) is Literal:
                made[each.name] = {"default": default, "choices": sorted(get_args(each.type))}
            else:
                made[each.name] = {"default": getattr(default, "default", default), "type": each.type}
        return made

    def add_arguments(parser):
        kwargs = kwargs_of(Config)
        kwargs["max_model_len"]["type"] = or_none(size)
        group = parser.add_argument_group(title="Config")
        for name, of_it in kwargs.items():
            flag = "--" + name.replace("_", "-")
            group.add_argument(flag, *(["-k"] if name == "kind" else []), **of_it)
        group.add_argument("--kv-dtype", dest="cache_dtype", type=lambda s: s.lower().replace("-", "_"))
        parser.add_argument("--names", nargs="+", action="append")
        parser.add_argument("--token", nargs="?", const=True)
        parser.add_argument("--level", type=int, default=0)
        parser.add_argument("--headless", action="store_true")
        parser.add_argument("--speculative-config", type=or_none(json.loads))
        parser.add_argument("--config", help="a file")
        return parser
    """
SIZES = """
    import re

    DEFAULT_PORT = 8000

    def size(text):
        if text == "auto":
            return -1
        found = re.fullmatch(r"([0-9.]+)([kK])", text)
        if found is None:
            return int(text)
        number, suffix = found.groups()
        return int(float(number) * 1000) if suffix == "k" else int(number) * 1024
    """
ENVS = """
    import os

    environment_variables = {"DEBUG": lambda: os.getenv("DEBUG", "0") == "1"}

    def __getattr__(name):
        return environment_variables[name]()
    """
TREE = {
    "entrypoints/cli/serve.py": SERVE,
    "parsing.py": PARSING,
    "arguments.py": ARGUMENTS,
    "sizes.py": SIZES,
    "envs.py": ENVS,
}
GUESS = """
    class SpeculativeConfig:
        def __post_init__(self):
            if self.method in ("eagle", "eagle3"):
                pass
            elif "eagle-" in self.draft_model_config.model.lower():
                self.method = "eagle"
            elif "dspark" in self.draft_model_config.model.lower() or "X" in self.draft_model_config.architectures:
                self.method = "dspark"
            elif self.draft_model_config.hf_config.model_type == "medusa":
                self.method = "medusa"
    """


def serve(tmp_path: Path, files: dict[str, str]) -> tuple[ServeFacts, dict[str, str]]:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_serve(SourceTree(tmp_path), unknown), unknown


def changed(file: str, old: str, new: str) -> dict[str, str]:
    assert old in TREE[file]
    return {**TREE, file: TREE[file].replace(old, new)}


def test_flags_as_the_releases_own_code_makes_them(tmp_path: Path) -> None:
    facts, unknown = serve(tmp_path, TREE)
    assert facts.flags == {
        "config": Flag(),
        "debug": Flag("switch", negation=True, default=False),
        "headless": Flag("switch", default=False),
        "inner": Flag("config", config="Inner", default={}),
        "kind": Flag(aliases=("-k",), choices=("a", "b"), default="a"),
        "kv-dtype": Flag(folds=True, dest="cache_dtype"),
        "level": Flag("int", default=0),
        "max-model-len": Flag("size", none=True, words={"auto": -1}),
        "names": Flag(nargs="+", appends=True),
        "port": Flag("int", default=8000),
        "prefix-caching": Flag("switch", negation=True, default=True),
        "speculative-config": Flag("json", none=True),
        "token": Flag(nargs="?", const=True),
        "where": Flag(),
    }
    assert facts.positional == "model_tag"
    assert (facts.sizes, facts.size_fractions) == ({"k": 1000, "K": 1024}, "k")
    assert unknown.pop("serve.flags.where.default") == "it depends on the platform"
    # the method words and the config classes are looked for elsewhere
    assert set(unknown) == {"serve.method_words", "serve.config_classes.Inner"}


def test_how_a_command_is_read(tmp_path: Path) -> None:
    names = ("abbreviations", "underscores", "dotted", "dotted_lists", "level_flag", "yaml_nested", "yaml_false")
    older, _ = serve(tmp_path / "older", TREE)
    assert [getattr(older, name) for name in names] == [True, False, False, False, None, False, False]
    newer, _ = serve(tmp_path / "newer", {**TREE, "parsing.py": PARSING + NEWER})
    assert [getattr(newer, name) for name in names] == [True, True, False, True, "level", True, True]


def test_a_model_that_must_stand_before_its_served_name(tmp_path: Path) -> None:
    named = changed(
        "arguments.py",
        "\n        return parser\n",
        "\n        parser.add_argument('--served-model-name')\n        return parser\n",
    )
    check = """
            if args[1].startswith("-") and any(re.match("--served[-_]model", arg) for arg in args):
                raise ValueError("the model first")
            return super().parse_args("""
    strict = PARSING.replace("\n            return super().parse_args(", check)
    assert serve(tmp_path / "loose", named)[0].model_first is False
    assert serve(tmp_path / "strict", {**named, "parsing.py": strict})[0].model_first is True


def test_a_switch_with_an_inverse_and_one_that_is_deprecated(tmp_path: Path) -> None:
    action = """
    import argparse
    class Inverting(argparse.BooleanOptionalAction):
        def __init__(self, option_strings, dest, *args, **kwargs):
            super().__init__(option_strings, dest, *args, **kwargs)
            self.inverse = "--disable-cache"
            self.option_strings = [*self.option_strings, self.inverse]
        def __call__(self, parser, namespace, values, option_string=None):
            setattr(namespace, self.dest, option_string != self.inverse and not option_string.startswith("--no-"))
    """
    more = """
        parser.add_argument("--enable-cache", action=Inverting)
        parser._deprecated.add(parser.add_argument("--old"))
        return parser
    """
    tree = changed("arguments.py", "\n        return parser\n", more)
    tree["arguments.py"] = "\n    from vllm.actions import Inverting" + tree["arguments.py"]
    tree["parsing.py"] = PARSING.replace(
        "        def parse_args", "        _deprecated = set()\n        def parse_args"
    )
    facts, _ = serve(tmp_path, {**tree, "actions.py": action})
    assert facts.flags is not None
    assert facts.flags["enable-cache"] == Flag("switch", negation=True, inverses=("disable-cache",))
    assert facts.flags["old"] == Flag(deprecated=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "group = parser",
            "if current_platform.is_cpu():\n            parser.add_argument('--x')\n        group = parser",
        ),
        ('"--level", type', "current_platform.flag, type"),
        ("kwargs = kwargs_of(Config)", "kwargs = current_platform.kwargs"),
        ("kwargs = kwargs_of(Config)", "while True: pass"),
        ("kwargs = kwargs_of(Config)", "kwargs = kwargs_of(Config)\n        raise OSError"),
    ],
)
def test_flags_are_all_known_or_none_of_them(tmp_path: Path, old: str, new: str) -> None:
    """A list with gaps would make of a good flag one that the release refuses."""
    facts, unknown = serve(tmp_path, changed("arguments.py", old, new))
    assert facts.flags is None
    assert {f"serve.{fact}" for fact in COMMAND_FACTS} <= set(unknown)


@pytest.mark.parametrize(
    ("field", "given"),
    [("choices", "choices=[current_platform.x]"), ("kind", "type=current_platform.x"), ("default", "default=envs")],
)
def test_what_of_one_flag_is_unknown(tmp_path: Path, field: str, given: str) -> None:
    facts, unknown = serve(tmp_path, changed("arguments.py", '"--level", type=int, default=0', f'"--level", {given}'))
    assert facts.flags is not None
    assert getattr(facts.flags["level"], field) is None
    assert f"serve.flags.level.{field}" in unknown
    assert len(facts.flags) == 14


def test_words_that_decide_the_method(tmp_path: Path) -> None:
    facts, _ = serve(tmp_path, {"config/speculative.py": GUESS})
    assert facts.method_kept == ("eagle", "eagle3")
    assert facts.method_words == (("eagle-", "eagle"), ("dspark", "dspark"))


def test_the_variable_of_the_attention_backend(tmp_path: Path) -> None:
    facts, _ = serve(tmp_path, {"envs.py": 'x = {"VLLM_ATTENTION_BACKEND": 1}'})
    assert facts.backend_variable


def test_an_empty_tree_is_unknown_not_wrong(tmp_path: Path) -> None:
    facts, unknown = serve(tmp_path, {})
    assert facts == ServeFacts()
    assert set(unknown) == {"serve.method_words", *(f"serve.{fact}" for fact in COMMAND_FACTS)}
