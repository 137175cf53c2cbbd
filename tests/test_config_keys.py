"""Every config key that something reads has a type in the table of expected ones: else a wrong one ends in a crash."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specfix.checker.registry import load_rules
from specfix.checker.report import Report
from specfix.checker.run import Chosen, run
from specfix.deployment import Deployment, Serving
from specfix.deployment.config import Config
from specfix.deployment.expected import INNER, KEYS, OBJECT, as_read, check_types
from specfix.deployment.files import Files
from specfix.deployment.kinds import MARKS
from specfix.deployment.load import make_draft, make_target
from specfix.deployment.model import AUX_PLACES, MTP_KEYS, Tensor
from specfix.deployment.presets import PRESETS
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck
from specfix.facts import PROVIDERS

ROOT = Path(__file__).parent.parent
ENGINES = sorted((ROOT / "specfix" / "engines" / "data").glob("*.json"))
READERS = [
    file
    for folder in ("specfix/facts", "specfix/deployment", "rules/specfix_rules")
    for file in sorted((ROOT / folder).rglob("*.py"))
]


def keys_read(file: Path) -> Iterator[str]:
    """Literals, and constants of the module, that ``file`` passes to a reader of config keys."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of_values = isinstance(node.func.value, ast.Attribute) and node.func.value.attr == "values"
        asks = node.func.attr in ("find", "stated", "value", "integer", "number")
        if asks or (node.func.attr == "get" and of_values):
            for argument in node.args[: 1 if of_values else None]:
                yield from texts(argument, file)


def texts(node: ast.expr, file: Path) -> Iterator[str]:
    """The strings that an argument stands for; none for what only a run can tell."""
    if isinstance(node, ast.Starred):
        node = node.value
    value: Any = node.value if isinstance(node, ast.Constant) else None
    if isinstance(node, ast.Name):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removeprefix("rules.")
        value = getattr(importlib.import_module(module.removesuffix(".__init__")), node.id, None)
    for key in (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ():
        if isinstance(key, str):
            yield key


def test_the_scan_sees_what_is_read() -> None:
    found = {key for file in READERS for key in keys_read(file)}
    assert {"num_hidden_layers", "layer_types", "rope_local_base_freq", "draft_vocab_size"} <= found | set(KEYS)
    assert {"layer_types", "canvas_length", "rope_local_base_freq", "speculators_config"} <= found


@pytest.mark.parametrize("file", READERS, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_key_in_the_code(file: Path) -> None:
    assert set(keys_read(file)) <= set(KEYS)


def test_a_key_in_a_table() -> None:
    assert {key for keys, _ in MARKS for key in keys} | set(MTP_KEYS) <= set(KEYS)
    for place in AUX_PLACES:
        typed(place)


@pytest.mark.parametrize("file", ENGINES, ids=lambda file: file.stem)
def test_a_key_that_an_engine_names(file: Path) -> None:
    facts = json.loads(file.read_text("utf-8"))
    lengths, eagle = facts["lengths"], facts["eagle"]
    places = {*(lengths["keys"] or ()), *(facts["traits"]["expert_keys"] or ())}
    places |= {lengths.get("overriding_key") or "max_position_embeddings"}
    for read in (eagle["aux_places"] or {}).values():
        places |= {place for place, _ in read}
    for hidden in (eagle.get("aux_hidden_by") or {}).values():
        places |= {*hidden, *hidden.values()}
    for sources in (eagle.get("fc_states") or {}).values():
        places |= {source.removeprefix("len(").removesuffix(")") for source in sources or () if not source.isdigit()}
    assert places
    for place in places:
        typed(place)


def typed(place: str) -> None:
    """Fail where a dotted key has no type."""
    block, _, key = place.rpartition(".")
    if block:
        assert KEYS.get(block) == OBJECT, f"{block} has no type"
    assert key in (INNER.get(block, {}) if block else KEYS), f"{place} has no type"


GIVEN: dict[str, dict[str, Any]] = {
    side: json.loads((ROOT / "examples" / folder / "config.json").read_text("utf-8"))
    for side, folder in (("target", "llama-3.1-8b-instruct"), ("draft", "eagle3-llama-3.1-8b"))
}
RULES = load_rules()
METHOD = "eagle3"
MACHINES = [(find_engine("vllm==0.26.0"), "h200"), (find_engine("vllm==0.32.0"), "cpu")]
NUMBERS = (5, 0, -1, 1.5, 1e308, 10**39, True)
JUNK: tuple[Any, ...] = (*NUMBERS, "x", "", [], [{}], [None], ["x"], [1.5], [[]], {}, {"x": {}})
NESTED: dict[str, Any] = {**INNER, "rope_scaling": {**INNER["rope_scaling"], "x": ()}, "mtp_config": {"x": ()}}
PLACES = [(key,) for key in KEYS] + [(block, key) for block, keys in NESTED.items() for key in keys]


@pytest.mark.parametrize("place", PLACES, ids="/".join)
def test_no_value_of_any_type_makes_a_rule_crash(place: tuple[str, ...]) -> None:
    crashed = []
    for value in JUNK:
        for side in ("target", "draft"):
            configs = dict(GIVEN)
            *above, key = place
            changed = {above[0]: {"rope_type": "linear", **{key: value}}} if above else {key: value}
            configs[side] = {**configs[side], **changed}
            try:
                reports = reports_on(configs["target"], configs["draft"])
            except CannotCheck:
                continue
            found = [one for report in reports for one in report.findings if one.code == "INT001"]
            crashed += [(side, value, one.finding.message) for one in found]
    assert crashed == []


def reports_on(target: dict[str, Any], draft: dict[str, Any]) -> list[Report]:
    """What is said of a pair of configs, each read as a file's would be."""
    configs = [Config(values, f"{side}.json") for side, values in (("target", target), ("draft", draft))]
    for config in configs:
        check_types(config)
    configs = [as_read(config, method)[0] for config, method in zip(configs, ("", METHOD), strict=True)]
    tensors = {"fc.weight": Tensor("BF16", (), "model.safetensors")}
    served = make_target("target", Files(configs[0]))
    head = make_draft("draft", Files(configs[1], tensors=tensors))
    serving = Serving(method=METHOD, num_speculative_tokens=3)
    return [
        run(Deployment(served, head, serving, PRESETS[hardware]), engine, Chosen(RULES), PROVIDERS)
        for engine, hardware in MACHINES
    ]
