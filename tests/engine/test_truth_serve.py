"""The flags of `vllm serve` and the engine's environment variables, as read, against the engine's own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specfix.engines.facts.serving import Flag, ServeFacts, Variable

from .ask.serve import REFUSED, TEXTS, VALUES
from .chosen import releases
from .truth import GATE, VERSIONS, ask, read

pytestmark = pytest.mark.engine

MOST_UNKNOWN = 0.03
FLAG_FIELDS = ("spellings", "off", "nargs", "const", "choices", "default", "dest", "appends", "deprecated")
OBJECTS = ('{"a": 1}', '{"a": 2k}')  # what a config takes of these is its class's affair


@pytest.mark.parametrize("version", releases(VERSIONS, *GATE))
def test_flags(version: str) -> None:
    facts, engine = read(version).serve, ask(version, "serve")
    assert facts.flags is not None
    assert sorted(facts.flags) == sorted(engine["flags"])
    assert [facts.positional] == engine["positional"]
    differ, unknown = [], []
    for name, flag in facts.flags.items():
        told, said = engine["flags"][name], as_told(name, flag)
        for field in FLAG_FIELDS:
            if f"serve.flags.{name}.{field}" in read(version).unknown:
                unknown.append(f"{name}.{field}")
            elif said[field] != (value := told[field]) and not (field == "const" and flag.nargs != "?"):
                differ.append(f"{name}.{field}: {said[field]!r}, the engine says {value!r}")
        if flag.kind is None:
            unknown.append(f"{name}.kind")
        elif flag.kind != "switch":
            differ += [f"{name} {what}" for what in misread(flag, facts, told["reads"])]
    texts = sum(len(told["reads"] or ()) for told in engine["flags"].values())
    print(f"\n{version}: {len(facts.flags)} flags, {len(FLAG_FIELDS)} facts each, {texts} texts, unknown: {unknown}")
    assert not differ, "\n".join(differ)
    assert len(unknown) <= MOST_UNKNOWN * len(facts.flags)


@pytest.mark.parametrize("version", releases(VERSIONS, *GATE))
def test_how_a_command_is_read(version: str) -> None:
    facts, rules = read(version).serve, ask(version, "serve")["rules"]
    assert {name: getattr(facts, name) for name in rules} == rules


@pytest.mark.parametrize("version", releases(VERSIONS, *GATE))
def test_keys_of_config_classes(version: str) -> None:
    read_here, engine = read(version).serve.config_classes, ask(version, "serve")["classes"]
    assert read_here
    assert sum(cls is None for cls in read_here.values()) <= 1  # PoolerConfig looks at its keys itself
    compared = [name for name, cls in read_here.items() if cls and name in engine]  # not all are in vllm.config
    assert len(compared) > len(read_here) * 0.6
    for name in compared:
        cls = read_here[name]
        assert cls is not None
        assert sorted(cls.keys) == engine[name]["keys"], name
        assert cls.refuses_others == engine[name]["refuses"], name
    keys = sum(len(cls.keys) for cls in read_here.values() if cls)
    print(f"\n{version}: {len(compared)} of {len(read_here)} classes, {keys} keys")


@pytest.mark.parametrize("version", releases(VERSIONS, *GATE))
def test_variables(version: str) -> None:
    table, engine = read(version).variables.variables, ask(version, "serve")["variables"]
    assert table is not None
    assert sorted(set(table) - {"LD_LIBRARY_PATH"}) == sorted(engine)
    differ, unknown, texts = [], [], 0
    for name, told in engine.items():
        variable = table[name]
        if f"variables.variables.{name}.default" in read(version).unknown:
            unknown.append(f"{name}.default")
        elif home(variable.default) != told["default"]:
            differ.append(f"{name}: {variable.default!r}, the engine says {told['default']!r}")
        if variable.kind is None:
            unknown.append(f"{name}.kind")
            continue
        for text in VALUES:
            want, value = taken(variable, text), told["reads"][text]
            texts += want is not ...
            unset = variable.kind == "bool" and want == REFUSED and value == told["default"]
            if want is not ... and want != value and not unset:
                differ.append(f"{name}={text!r} is {want!r}, the engine says {value!r}")
    print(f"\n{version}: {len(engine)} variables, {texts} texts, unknown: {unknown}")
    assert not differ, "\n".join(differ)
    for field in ("default", "kind"):
        assert sum(each.endswith(f".{field}") for each in unknown) <= MOST_UNKNOWN * len(engine)


def as_told(name: str, flag: Flag) -> dict[str, Any]:
    """The facts in the engine's terms."""
    on = [f"--{name}", *flag.aliases]
    off = [f"--no-{each[2:]}" for each in on if each.startswith("--") and flag.negation]
    off += [f"--{each}" for each in flag.inverses]
    default = flag.default
    if flag.kind == "config" and default is not None:
        default = {"made of": default, "class": flag.config}
    return {
        "spellings": sorted(on + off),
        "off": sorted(off),
        "nargs": 0 if flag.kind == "switch" else flag.nargs,
        "const": flag.const,
        "choices": None if flag.choices is None else list(flag.choices),
        "default": default,
        "dest": flag.dest or name.replace("-", "_"),
        "appends": flag.appends,
        "deprecated": flag.deprecated,
    }


def misread(flag: Flag, facts: ServeFacts, told: dict[str, Any]) -> Iterator[str]:
    """The texts of which the flag's kind says something else than the engine."""
    for text in TEXTS:
        if flag.kind == "config" and text in OBJECTS:
            continue
        want = reading(flag, facts, text)
        if want != told[text]:
            yield f"{flag.kind} {text!r} is {want!r}, the engine says {told[text]!r}"


def reading(flag: Flag, facts: ServeFacts, text: str) -> Any:
    """What a text means, by the facts."""
    if flag.none and text in {"", "None"}:
        return None
    if text in flag.words:
        word = flag.words[text]
        return {"made of": word, "class": flag.config} if flag.kind == "config" else word
    by_kind: dict[str, Callable[[], Any]] = {
        "str": lambda: text.lower().replace("-", "_") if flag.folds else text,
        "int": lambda: int(text),
        "float": lambda: float(text),
        "size": lambda: size(facts, text),
        "json": lambda: json.loads(text),
        "json_or_str": lambda: json.loads(text) if re.match(r"(?s)^\s*{.*}\s*$", text) else text,
        "config": lambda: {"made of": json.loads(text) if text == "{}" else int("no config"), "class": flag.config},
        "comma_list": lambda: [int(part) if part.isdigit() else part for part in text.split(",")],
        "bool": lambda: bool(text),
    }
    try:
        return by_kind[str(flag.kind)]()
    except ValueError:
        return REFUSED


def size(facts: ServeFacts, text: str) -> int:
    factor = (facts.sizes or {}).get(text[-1:])
    if factor is None:
        return int(text)
    fraction = text[-1] in (facts.size_fractions or "")
    return int(float(text[:-1]) * factor) if fraction else int(text[:-1]) * factor


def taken(variable: Variable, text: str) -> Any:
    """What a text means, by the facts; ... where they do not say (how a text is cut or spelt, a text of a bool
    besides 1, 0, true and false)."""
    if variable.choices is not None:
        if text in {choice.lower() for choice in variable.choices} | {choice.upper() for choice in variable.choices}:
            return ...  # case may not matter
        if variable.kind == "list":
            return ... if not text else REFUSED
        return text if text in variable.choices else REFUSED
    if variable.kind == "bool":
        if text not in {"1", "0", "true", "false"}:
            return ...
        return text in variable.on if text in (*variable.on, *variable.off) else REFUSED
    if text == "7" and variable.kind in {"int", "float"}:
        return 7
    if text == "Ab,cd" and variable.kind == "list":
        return ["Ab", "cd"]
    if text == '{"a": 1}' and variable.kind == "json":
        return {"a": 1}
    return home(text) if text == "~/path" and variable.kind == "path" else ...


def home(value: Any) -> Any:
    return str(Path(value).expanduser()) if isinstance(value, str) and value.startswith("~") else value
