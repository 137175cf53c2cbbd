"""The speculative config, overrides of drafts' configs and speculators conversions, as read and as the engine does."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from specfix.engines import Engine
from specfix.engines.conditions import evaluate
from specfix.engines.drafts import Refused, Unknown, converted, overridden
from specfix.engines.facts.speculative import Key

from .chosen import releases
from .truth import GATE, VERSIONS, ask, read

pytestmark = pytest.mark.engine

# what pydantic takes for a type, of what the engine was asked with; a number may stand for a wider one
TAKES = {
    "bool": {"true"},
    "int": {"true", "7"},
    "float": {"true", "7", "1.5"},
    "str": {'"text"'},
    "list[float]": {"[0.5]"},
    "list[tuple[int, int, int]]": {"[[1, 2, 3]]"},
    "LoadConfig": set(),
}
LIMIT = 0.03  # of a kind that may be unknown


@pytest.fixture(params=releases(VERSIONS, *GATE))
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_keys(version: str) -> None:
    facts, said = read(version).speculative, ask(version, "speculative")
    keys = facts.keys or {}
    assert facts.passed is not None and facts.made is not None
    assert {*keys, *facts.passed, *facts.made} == set(said["fields"])
    assert all(said["fields"][name]["takes_anything"] for name in (*facts.passed, *facts.made))
    assert {name: as_said(key) for name, key in keys.items()} == {name: said["fields"][name] for name in keys}
    assert facts.refuses_others == said["refuses_others"]
    print(f"{version}: {len(keys)} keys, {sum(len(key.choices or ()) for key in keys.values())} choices")


def as_said(key: Key) -> dict[str, Any]:
    assert key.type is not None
    bounds = {"ge": key.at_least, "gt": key.above, "le": key.at_most, "lt": key.below}
    takes = set() if key.choices else TAKES[key.type]
    return {
        "default": key.default,
        "choices": None if key.choices is None else list(key.choices),
        "nullable": key.nullable,
        "takes_anything": not key.validated,
        "takes": {value: value in takes for value in ("true", "7", "1.5", '"text"', "[0.5]", "[[1, 2, 3]]")},
        "bounds": {kind: bound for kind, bound in bounds.items() if bound is not None},
    }


def test_overrides(version: str) -> None:
    facts, said = read(version).mtp, ask(version, "speculative")
    assert facts.method == "mtp" and set(facts.model_types or ()) == set(said["mtp"])
    assert set(facts.aliases or ()) == set(said["mtp"]) - {"mtp"}
    wrong, unknown, changed, unclaimed = [], 0, 0, 0
    for asked in said["overrides"]:
        try:
            made = overridden(facts, asked["config"])
        except Unknown:
            unknown += 1
            continue
        except Refused as error:
            if "error" not in asked:
                wrong.append((asked, str(error)))
            continue
        ours = {key: made.get(key) for key in ("model_type", "architectures", "n_predict")}
        theirs = {key: asked.get(key) for key in ours}
        changed += made != asked["config"]
        if "error" in asked:  # what a step reads of a broken config for keys that are no facts
            unclaimed += 1
        elif ours != theirs:
            wrong.append((asked, str(ours)))
    errors = sum("error" in asked for asked in said["overrides"])
    print(f"{version}: {len(said['overrides'])} drafts, {changed} of them changed, {errors} refused")
    print(f"{version}: {unknown} unknown, {unclaimed} refused over what is no fact")
    assert not wrong, f"{len(wrong)}: {json.dumps(wrong[:3])}"
    assert changed > 100 and unknown <= LIMIT * len(said["overrides"])


def test_methods(version: str) -> None:
    """The method and the number of tokens that ``__post_init__`` leaves, by the steps that were read of it."""
    facts, said = read(version).speculative, ask(version, "speculative")
    assert facts.methods and facts.tokens and facts.multiples is not None and facts.refusals is not None
    refusals = {step.line: step for step in facts.refusals}
    wrong, unread, unknown, refused = [], list[str](), 0, 0
    for asked in said["starts"]:
        values = names_of(asked)
        sure = True
        for step in facts.methods:
            holds = evaluate(step.when, values)
            sure = sure and holds is not None
            if holds:
                values["method"] = step.then
        if not sure:
            unknown += 1
        elif values["method"] != asked["after"]["method"]:
            wrong.append((asked, values["method"]))
        after = {**values, **asked["after"]}
        if asked["error"] is None:
            held = [step.line for step in facts.refusals if evaluate(step.when, after)]
            if held:
                wrong.append((asked, f"refused at {held}"))
        elif asked["line"] in refusals:
            refused += 1
            if evaluate(refusals[asked["line"]].when, after) is False:
                wrong.append((asked, "not refused"))
        elif "divisible" not in asked["error"]:
            unread.append(asked["error"])
        if asked["error"] is None or "divisible" in asked["error"]:
            ours = tokens(read(version), values)
            if ours != (asked["error"] is None, asked["after"]["num_speculative_tokens"]):
                wrong.append((asked, str(ours)))
    print(f"{version}: {len(said['starts'])} starts, {refused} refused where a refusal was read; {unknown} unknown")
    print(f"{version}: ended by what is no refusal of the facts: {Counter(unread)}")
    assert not wrong, f"{len(wrong)}: {json.dumps(wrong[:3])}"
    assert unknown <= LIMIT * len(said["starts"])


def names_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    draft = asked["draft"]
    model = asked["given"]["model"] or ""
    return {
        **asked["given"],
        "_is_custom_proposer_path(model)": asked["custom"],
        "draft_model_config.model.lower()": model.lower(),
        "draft_model_config.architectures": draft["architectures"],
        "draft_model_config.hf_config.model_type": draft["model_type"],
        "draft_model_config.hf_config.n_predict": draft["n_predict"],
        "draft_model_config.hf_config.block_size": draft["block_size"],
        "has_arctic_inference()": False,
        "target_model_config.using_transformers_backend()": None,
        "target_model_config.hf_text_config.num_mtp_layers": None,
    }


def tokens(engine: Engine, values: Mapping[str, Any]) -> tuple[bool, Any]:
    """Whether the number of tokens is taken, and what it is then."""
    facts = engine.speculative
    number = values["num_speculative_tokens"]
    for step in facts.tokens or ():
        if evaluate(step.when, values):
            number = next((values[name] for name in step.then if values.get(name) is not None), None)
    for step in facts.multiples or ():
        of = values.get(step.then)
        if evaluate(step.when, values) and of and number > of and number % of:
            return False, number
    return True, number


def test_conversions(version: str) -> None:
    facts, said = read(version).speculators, ask(version, "speculative")
    algorithms = facts.algorithms or {}
    asked_of = {asked["algorithm"] for asked in said["conversions"]}
    assert set(algorithms) <= asked_of and facts.tokens_as and facts.required
    wrong, made = [], 0
    for asked in said["conversions"]:
        config = asked["config"]
        try:
            ours: object = converted(facts, config)
            made += 1
        except Refused:
            ours = None
        if ours != (asked["converted"] if isinstance(asked["converted"], dict) else None):
            wrong.append((asked, str(ours)))
        complete = all(has(config, path) for path in facts.required)
        theirs = asked["speculative"] if isinstance(asked["speculative"], dict) else None
        algorithm = algorithms.get(asked["algorithm"])
        if complete is not (theirs is not None):
            wrong.append((asked, "required keys"))
        elif theirs is not None and algorithm is not None:
            number = config["speculators_config"]["proposal_methods"][0]["speculative_tokens"]
            if theirs != {**algorithm.speculative, facts.tokens_as: number}:
                wrong.append((asked, str(algorithm.speculative)))
    print(f"{version}: {len(algorithms)} algorithms, {len(said['conversions'])} configs, {made} of them converted")
    assert not wrong, f"{len(wrong)}: {json.dumps(wrong[:3])}"
    assert made > 20


def has(config: Any, path: str) -> bool:
    for step in path.split("."):
        if isinstance(config, list):
            config = config[int(step)] if int(step) < len(config) else None
        else:
            config = config.get(step) if isinstance(config, dict) else None
    return config is not None
