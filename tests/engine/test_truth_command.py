"""Whole commands as specfix reads them with a release's facts, against the release's own parser."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from specfix.engines.facts.serving import Flag
from specfix.launch.arguments import read_arguments
from specfix.launch.words import Word

from .chosen import releases
from .engines import engine
from .truth import GATE, MINUTES, VERSIONS, read

pytestmark = pytest.mark.engine

SEED, COMMANDS, FILES = 20261130, 400, 60
POOL = {
    "int": ("0", "2", "-1", "x", "1.5"),
    "float": ("0.5", "1", "x"),
    "size": ("8", "2k", "2K", "1.5k", "x"),
    "str": ("a", "auto", "-x", "1", "None"),
    "json": ('{"a": 1}', "[1]", "{", "null", "text"),
    "json_or_str": ('{"a": 1}', "text", "{"),
    "config": ("{}", "[]", "{", "text"),
    "comma_list": ("1,2", "a"),
    "bool": ("true", ""),
}
# the last one has an action that looks into its value
NOT_ASKED = frozenset({"config", "help", "version", "model", "headless", "grpc", "lora-modules"})


@pytest.mark.parametrize("version", releases(VERSIONS, *GATE))
def test_commands(version: str, tmp_path: Path) -> None:
    release = read(version)
    assert release.serve.flags is not None
    dice = random.Random(SEED)
    left_out = {each.split(".")[2] for each in release.unknown if each.startswith("serve.flags.")} | NOT_ASKED
    flags = {name: flag for name, flag in release.serve.flags.items() if name not in left_out}
    given = [command(dice, flags) for _ in range(COMMANDS)]
    given += [["--config", str(config_file(dice, flags, tmp_path / f"{n}.yaml"))] for n in range(FILES)]
    differ, outcomes = [], Counter[str]()
    for words, told in zip(given, ask(version, given), strict=True):
        arguments = read_arguments([Word(word) for word in words], release)
        refused = [misfit.message for misfit in arguments.misfits if not misfit.ignored]
        outcomes["refused" if told is None else "taken"] += 1
        if (told is None) != bool(refused):
            differ.append(f"{words}: the engine {'refuses' if told is None else 'takes'} it; {refused}")
        elif told is not None:
            model = arguments.model and arguments.model.value
            if model != (told.get("model_tag") or told.get("model")):
                differ.append(f"{words}: the model is {model!r}, the engine says {told}")
            said = {name: option.value for name, option in arguments.options.items()}
            wrong = [name for name, value in said.items() if not same(value, told.get(name))]
            differ += [f"{words}: {name} is {said[name]!r}, the engine says {told.get(name)!r}" for name in wrong]
    print(f"\n{version}: {len(given)} commands, {dict(outcomes)}")
    assert min(outcomes.values()) > 50, "both kinds are asked about"
    assert not differ, "\n".join(differ)


def same(value: Any, told: Any) -> bool:
    """What a config's fields become is its class's affair."""
    if isinstance(told, dict) and ("made of" in told or "no JSON" in told):
        return True
    return bool(value == told)


def command(dice: random.Random, flags: dict[str, Flag]) -> list[str]:
    """A model and a few options, spelt in one of the ways that there are, now and then wrong."""
    words = ["m"]
    for name in dice.sample(sorted(flags), dice.randint(1, 3)):
        words += option(dice, name, flags[name])
    if dice.random() < 0.08:
        words.append("stray")
    return words


def option(dice: random.Random, name: str, flag: Flag) -> list[str]:
    spelt = f"--{name}"
    way = dice.random()
    if way < 0.15:
        spelt = spelt.replace("_", "-") if way < 0.05 else f"--{name.replace('-', '_')}"
    elif way < 0.25:
        spelt = spelt[: -dice.randint(1, 3)]
    elif way < 0.35 and flag.aliases:
        spelt = dice.choice(flag.aliases)
    elif way < 0.40:
        spelt += "x"
    if flag.kind == "switch":
        return [f"--no-{spelt[2:]}" if flag.negation and spelt.startswith("--") and dice.random() < 0.4 else spelt]
    if flag.kind == "json" and dice.random() < 0.4 and spelt == f"--{name}":
        return [f"{spelt}.a.b", dice.choice(("1", "x", "2k", "[1]"))]
    values = POOL.get(flag.kind or "str", POOL["str"])
    if flag.choices and dice.random() < 0.7:
        values = tuple(str(choice) for choice in flag.choices if isinstance(choice, str | int)) or values
    text = dice.choice(values)
    if spelt.startswith("--") and dice.random() < 0.4:
        return [f"{spelt}={text}"]
    more = [dice.choice(values)] if flag.nargs in ("+", "*") and dice.random() < 0.5 else []
    return [spelt, text, *more]


def config_file(dice: random.Random, flags: dict[str, Flag], file: Path) -> Path:
    values: dict[str, Any] = {"model": "m"}
    for name in dice.sample(sorted(flags), dice.randint(1, 3)):
        kind = flags[name].kind
        if kind == "switch":
            values[name] = dice.choice((True, False))
        elif kind in {"json", "config"}:
            values[name] = dice.choice(({}, {"a": 1}) if kind == "json" else ({},))
        else:
            values[name] = dice.choice((1, "a", [1, 2], True, 0.5))
    file.write_text(yaml.safe_dump(values))
    return file


def ask(version: str, given: list[list[str]]) -> list[Any]:
    found = engine(version)
    script = Path(__file__).with_name("ask") / "command.py"
    done = subprocess.run(
        [found.python, str(script)],
        input=json.dumps(given),
        env=found.env,
        capture_output=True,
        text=True,
        timeout=MINUTES * 60,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{script.name} on {version} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    told: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return told
