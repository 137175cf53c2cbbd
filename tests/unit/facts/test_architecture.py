"""Which class counts, and where aux ids are looked for: as the release does."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from specfix.deployment import Draft, Target
from specfix.deployment.config import Config
from specfix.engines import Engine
from specfix.engines.drafts import Refused, Unknown, overridden
from specfix.engines.find import find_engine
from specfix.errors import MissingFact
from specfix.facts.architecture import architecture_of, first_known, has_no_class, through_overrides
from specfix.facts.aux import AuxPlan, fc_states, plan_of
from specfix.facts.runner import traits

Makings = list[dict[str, Any]]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return find_engine("vllm==0.26.0")


def config(**values: Any) -> Config:
    return Config({"num_hidden_layers": 32, **values}, "config.json")


def target(*architectures: str, **more: Any) -> Target:
    return Target("target", config(architectures=list(architectures), **more))


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("LlamaForCausalLM",), "LlamaForCausalLM"),
        (("NovelForCausalLM", "LlamaForCausalLM"), "LlamaForCausalLM"),
        (("Qwen3ForCausalLM", "LlamaForCausalLM"), "Qwen3ForCausalLM"),
        (("NovelForCausalLM", "OtherForCausalLM"), "NovelForCausalLM"),
    ],
)
def test_the_first_class_that_the_release_knows(engine: Engine, names: tuple[str, ...], taken: str) -> None:
    assert architecture_of(target(*names), engine) == taken


def test_no_class(engine: Engine) -> None:
    assert first_known((), engine) is None
    with pytest.raises(MissingFact, match=r"architectures in config\.json"):
        architecture_of(target(), engine)


def test_the_same_class_counts_for_all_that_follows(engine: Engine) -> None:
    hybrid = next(iter(engine.traits.having["is_hybrid"]))
    assert traits(target("NovelForCausalLM", hybrid), engine)["is_hybrid"]
    head = Draft("draft", config(architectures=["Novel", "LlamaForCausalLMEagle3"], num_aux_hidden_states=2))
    assert fc_states(head, engine) == 2


@pytest.mark.parametrize(("experts", "moe"), [(8, True), (0, False), ([64, 64], True), ([0, 0], False), ([], False)])
def test_experts(engine: Engine, experts: object, moe: bool) -> None:
    assert traits(target("LlamaForCausalLM", num_experts=experts), engine)["is_moe"] is moe


def told(made: Any, *given: Any) -> list[Any]:
    """What counts of a config that the overrides have made, or how they end."""
    try:
        config = made(*given)
    except (Refused, Unknown) as end:
        return [type(end), str(end)]
    return [config.get(key) for key in ("model_type", "architectures", "n_predict")]


def words(condition: Any) -> set[str]:
    """All texts in a condition."""
    if isinstance(condition, str):
        return {condition}
    return set().union(*map(words, condition)) if isinstance(condition, list) else set()


@pytest.mark.parametrize("version", ["0.10.2", "0.18.1", "0.26.0", "0.33.0"])
def test_overrides_look_at_nothing_else(version: str) -> None:
    """What is left out before them changes nothing of what they make."""
    release = find_engine(f"vllm=={version}")
    assert release.mtp.overrides
    named = sorted(set().union(*(words(override.when) for override in release.mtp.overrides)))
    inner = {"num_nextn_predict_layers": 2, "num_mtp_modules": 3, "mtp_num_hidden_layers": 4}
    counts: Makings = [
        inner,
        {"num_nextn_predict_layers": 0},
        {},
        {"mtp_config": {"num_nextn_predict_layers": 1}, **inner},
    ]
    seen = set()
    for name in named:
        texts: Makings = [{}, {"text_config": {"model_type": name, "architectures": [name], **inner}}]
        classes: Makings = [{"architectures": [name]}, {"architectures": ["Other"]}, {}]
        for own, text, classed in product(counts, texts, classes):
            values = {"model_type": name, "hidden_size": 64, **own, **text, **classed}
            expected = told(overridden, release.mtp, values)
            assert told(through_overrides, values, release) == expected
            assert told(through_overrides, {**values, "hidden_size": 1}, release) == expected
            seen.add(str(expected))
    assert len(seen) > 20


@pytest.mark.parametrize("place", ["eagle_config.layer_ids", "dflash_config.layer_ids", "novel_config.ids", "novel"])
def test_ids_wherever_the_release_looks(engine: Engine, place: str) -> None:
    block, _, key = place.rpartition(".")
    draft = Draft("draft", config(**({block: {key: [1, 2, 3]}} if block else {key: [1, 2, 3]})))
    own = replace(engine, eagle=replace(engine.eagle, aux_places={"V1": ((place, 1),)}))
    plan = plan_of("V1", target("LlamaForCausalLM"), draft, own)
    assert plan == AuxPlan((2, 3, 4), place, ())
    assert plan.location(draft).pointer == "/" + place.replace(".", "/")
    assert str([1, 2, 3]) in plan.said(draft, own)


def test_every_place_of_every_release_is_read(engine: Engine) -> None:
    assert engine.eagle.aux_places
    for runner, places in engine.eagle.aux_places.items():
        for place, shift in places:
            block, _, key = place.rpartition(".")
            draft = Draft("draft", config(**({block: {key: [4]}} if block else {key: [4]})))
            assert plan_of(runner, target("LlamaForCausalLM"), draft, engine).ids == (4 + shift,)


@pytest.mark.parametrize(
    ("names", "nothing"),
    [
        (["LlamaForCausalLM"], False),
        (["LlamaForCausalLMs"], True),
        (["LlamaLMHeadModel"], False),  # the registry's class under another ending
        (["NovelForCausalLM", "LlamaForCausalLM"], False),
        (["NovelForCausalLM", "OtherForCausalLM"], True),
        ([], False),
    ],
)
def test_a_class_of_nobody(engine: Engine, names: list[str], nothing: bool) -> None:
    assert has_no_class(names, target(*names), engine) is nothing


def test_a_class_of_somebody_else(engine: Engine) -> None:
    with pytest.raises(MissingFact, match="Transformers' class DogeForCausalLM"):
        has_no_class(["NovelForCausalLM", "DogeForCausalLM"], target(), engine)
    with pytest.raises(MissingFact, match="the code that"):
        has_no_class(["NovelForCausalLM"], target(auto_map={"AutoModelForCausalLM": "a.B"}), engine)
    assert has_no_class(["NovelForCausalLM"], target(auto_map={"AutoConfig": "a.B"}), engine)
    with pytest.raises(MissingFact, match="under which other names"):
        has_no_class(["NovelForCausalLM"], target(), replace(engine, methods=replace(engine.methods, suffixes=None)))
