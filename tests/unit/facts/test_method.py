"""What a release makes of a draft, of the method and of the speculative config, before it loads anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specfix.deployment import Deployment, Draft, Serving, Target
from specfix.deployment.config import Config
from specfix.deployment.kinds import draft_kind
from specfix.engines import Engine
from specfix.engines.find import find_engine
from specfix.errors import MissingFact
from specfix.facts.architecture import DraftClasses, draft_classes, language_class
from specfix.facts.method import Settled, method, settled_method
from specfix.facts.speculative_config import Refusals, refusals


@pytest.fixture(scope="module")
def engine() -> Engine:
    return find_engine("vllm==0.32.0")


TARGET = Target("target", Config({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}, "t/config.json"))


def draft(place: str = "/models/neutral", **values: Any) -> Draft:
    config = Config(values, f"{place}/config.json")
    return Draft(place, config, kind=draft_kind(config), speculators=config.is_speculators)


def classes(engine: Engine, name: str, **values: Any) -> DraftClasses:
    return draft_classes(TARGET, draft(**values), name, engine)


@pytest.mark.parametrize("given", ["deepseek_mtp", "mtp", "gemma4_mtp"])
def test_names_of_a_built_in_draft(engine: Engine, given: str) -> None:
    assert method(Serving(method=given), engine) == "mtp"


def test_other_names_are_kept(engine: Engine) -> None:
    assert method(Serving(method="eagle3"), engine) == "eagle3"
    assert method(Serving(method="novel_mtp"), engine) == "novel_mtp"


@pytest.mark.parametrize(
    ("name", "stated", "model_type", "built"),
    [
        ("eagle3", "LlamaForCausalLMEagle3", "llama", "LlamaForCausalLMEagle3"),
        ("eagle3", "LlamaForCausalLM", "llama", "Eagle3LlamaForCausalLM"),
        ("eagle", "LlamaForCausalLM", "llama", "EagleLlamaForCausalLM"),
        ("eagle3", "Eagle3DeepseekV2ForCausalLM", "deepseek_v3", "Eagle3DeepSeekMTPModel"),
        ("dflash", "DFlashDraftModel", "qwen3", "DFlashDraftModel"),
        ("dspark", "DSparkDraftModel", "qwen3", "Qwen3DSparkModel"),
        ("dspark", "LlamaForCausalLM", "llama", "DSparkDraftModel"),
        ("draft_model", "LlamaForCausalLM", "llama", "LlamaForCausalLM"),
        ("mtp", "DeepseekV3ForCausalLM", "deepseek_v3", "DeepSeekMTPModel"),
    ],
)
def test_the_class_that_is_built(engine: Engine, name: str, stated: str, model_type: str, built: str) -> None:
    found = classes(engine, name, architectures=[stated], model_type=model_type)
    assert found.built == (built,)
    assert found.stated_type == model_type


def test_the_first_look_up_that_finds_nothing(engine: Engine) -> None:
    lost = classes(engine, "dspark", architectures=["KimiK3DSpark4KDA1MLADraftModel"], model_type="qwen3")
    assert lost.lacking(engine) == ("KimiK3DSpark4KDA1MLADraftModel",)
    kept = classes(engine, "eagle3", architectures=["Novel", "LlamaForCausalLMEagle3"], model_type="llama")
    assert kept.lacking(engine) == ()


def test_the_format_of_vllm_itself(engine: Engine) -> None:
    inner = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    found = classes(engine, "eagle3", model_type="eagle", method="eagle3", model=inner)
    assert found.read == found.built == ("Eagle3LlamaForCausalLM",)
    with pytest.raises(MissingFact, match="the method of its EAGLE format"):
        classes(engine, "eagle3", model_type="eagle", method="novel", model=inner)


def test_a_config_that_ends_the_start(engine: Engine) -> None:
    assert classes(engine, "eagle3", model_type="llama").refused == "the config has no architectures"
    layer = {"model_type": "gemma3", "num_hidden_layers": 1}
    found = classes(engine, "eagle3", speculators_model_type="eagle3", transformer_layer_config=layer)
    assert found.refused == "no architecture for the model type gemma3"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ({"architectures": ["Qwen2ForCausalLM"]}, "Qwen2ForCausalLM"),
        ({"model_type": "llama"}, "LlamaForCausalLM"),
        ({"model_type": "qwen3_next"}, "Qwen3NextForCausalLM"),
        ({"model_type": "novel"}, None),
        (None, None),
    ],
)
def test_the_decoder_inside(engine: Engine, text: Any, name: str | None) -> None:
    target = Target("target", Config({"architectures": ["LlavaForConditionalGeneration"], "text_config": text}, "c"))
    if name is None:
        with pytest.raises(MissingFact, match="architectures in the text_config"):
            language_class(target, engine)
    else:
        assert language_class(target, engine) == name


def deployment(given: str | None, drafting: Draft | None, **options: Any) -> Deployment:
    serving = Serving(method=given, **options)
    return Deployment(TARGET, drafting, serving, None, method_given=given is not None)


def settled(engine: Engine, given: str | None, place: str, **values: Any) -> Settled:
    drafting = draft(place, architectures=["LlamaForCausalLM"], model_type="llama", **values)
    found = draft_classes(TARGET, drafting, "draft_model", engine)
    return settled_method(deployment(given, drafting), drafting, found, engine)


@pytest.mark.parametrize(
    ("given", "place", "ended"),
    [
        (None, "/models/neutral", Settled("draft_model")),
        (None, "/models/eagle3/head", Settled("eagle3", "eagle3")),
        (None, "/eagle-eye/dflash", Settled("eagle", "eagle-")),
        ("draft_model", "/eagle-eye/small", Settled("eagle", "eagle-")),
        ("dflash", "/eagle-eye/head", Settled("dflash")),
        ("eagle3", "/models/eagle3", Settled("eagle3")),
    ],
)
def test_the_path_decides(engine: Engine, given: str | None, place: str, ended: Settled) -> None:
    assert settled(engine, given, place) == ended


def refused(engine: Engine, given: str, drafting: Draft | None = None, **options: Any) -> Refusals:
    found = None if drafting is None else draft_classes(TARGET, drafting, given, engine)
    return refusals(deployment(given, drafting, **options), TARGET, engine, drafting, found)


def test_a_plain_config_is_refused_by_no_release() -> None:
    for version in ("0.10.2", "0.20.1", "0.26.0", "0.32.0"):
        found = refused(find_engine(f"vllm=={version}"), "ngram", num_speculative_tokens=3)
        assert not found.of_others and not found.of_tokens, version


def test_what_is_refused(engine: Engine) -> None:
    head = draft(architectures=["LlamaForCausalLMEagle3"], model_type="llama")
    rates = refused(engine, "eagle3", head, num_speculative_tokens=3, speculative={"synthetic_acceptance_length": 2.5})
    assert len(rates.of_others) == 1 and not rates.of_tokens
    none = refused(engine, "eagle3", head)
    assert none.of_tokens and not none.of_others


def test_where_the_number_comes_from(engine: Engine) -> None:
    whole = draft(architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", num_nextn_predict_layers=1)
    early = refused(engine, "mtp", whole)  # it is compared before it is taken from the draft
    assert early.of_tokens
    spark = draft(architectures=["DSparkDraftModel"], model_type="qwen3", block_size=7)
    found = refused(engine, "dspark", spark)
    assert not found.of_tokens and found.values["num_speculative_tokens"] == 7
    assert not refused(engine, "suffix").of_tokens


def test_what_a_key_is_spelled_with(engine: Engine) -> None:
    given = {"use-heterogeneous-vocab": True}
    assert refused(engine, "ngram", num_speculative_tokens=3, speculative=given).of_others
    other = replace(engine, speculative=replace(engine.speculative, dashes=False))
    assert not refused(other, "ngram", num_speculative_tokens=3, speculative=given).of_others
