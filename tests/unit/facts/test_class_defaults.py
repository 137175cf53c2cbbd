"""What a config.json leaves out has the value that the engine's config class gives it, or none, or is not known."""

from __future__ import annotations

from typing import Any

import pytest

from specfix.deployment import Deployment, Draft, Serving, Target
from specfix.deployment.config import Config
from specfix.engines import Engine
from specfix.engines.find import find_engine
from specfix.errors import MissingFact
from specfix.facts.class_defaults import with_class_defaults

FILE = "config.json"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return find_engine("vllm==0.32.0")


def resolved(engine: Engine, **values: Any) -> Target:
    target = Target("target", Config(values, FILE))
    return with_class_defaults(Deployment(target, None, Serving(), None), engine).target


def test_a_key_that_is_left_out_takes_the_classes_default(engine: Engine) -> None:
    llama = resolved(engine, model_type="llama")
    assert llama.integer("max_position_embeddings") == 2048
    assert llama.at("max_position_embeddings").pointer == "/max_position_embeddings"
    assert llama.at("max_position_embeddings").line is None
    assert llama.config.source("max_position_embeddings") == ", the default of LlamaConfig"


def test_what_the_file_states_counts_first(engine: Engine) -> None:
    llama = resolved(engine, model_type="llama", max_position_embeddings=7, num_attention_heads=4, hidden_size=64)
    assert llama.integer("max_position_embeddings") == 7
    assert llama.config.source("max_position_embeddings") == ""
    assert (llama.integer("num_key_value_heads"), llama.integer("head_dim")) == (4, 16)  # made of the others


def test_a_null_is_a_statement(engine: Engine) -> None:
    assert resolved(engine, model_type="qwen3").number("sliding_window") is None
    assert resolved(engine, model_type="llama", max_position_embeddings=None).number("max_position_embeddings") is None


def test_another_name_of_a_key_is_known_to_the_class(engine: Engine) -> None:
    assert resolved(engine, model_type="gpt2", n_embd=48).integer("hidden_size") == 48


def test_an_inner_config_has_a_class_of_its_own(engine: Engine) -> None:
    inner = resolved(engine, model_type="gemma3", text_config={"hidden_size": 64})  # its type is not stated
    assert inner.integer("num_hidden_layers") == resolved(engine, model_type="gemma3_text").integer("num_hidden_layers")
    assert inner.at("num_hidden_layers").pointer == "/text_config/num_hidden_layers"


@pytest.mark.parametrize(
    "values",
    [
        {"model_type": "nobody_knows"},
        {},
        {"speculators_model_type": "eagle3"},
        {"model_type": "llama", "auto_map": {"AutoConfig": "configuration_own.OwnConfig"}},
    ],
)
def test_without_a_known_class_the_key_stays_missing(engine: Engine, values: dict[str, Any]) -> None:
    with pytest.raises(MissingFact, match=rf"max_position_embeddings in {FILE}"):
        resolved(engine, **values).integer("max_position_embeddings")


def test_a_default_that_cannot_be_told_is_no_default(engine: Engine) -> None:
    model = resolved(engine, model_type="deepseek_v4")
    with pytest.raises(MissingFact, match="rope_parameters of DeepseekV4Config"):
        model.config.find("rope_parameters")


def test_the_wrapper_of_an_eagle_draft_answers_by_what_it_wraps(engine: Engine) -> None:
    config = Config({"model_type": "eagle", "model": {"model_type": "llama", "hidden_size": 64}}, FILE)
    target = Target("target", Config({"model_type": "llama"}, FILE))
    deployment = Deployment(target, Draft("draft", config), Serving(), None)
    draft = with_class_defaults(deployment, engine).draft
    assert draft is not None
    assert (draft.integer("hidden_size"), draft.integer("max_position_embeddings")) == (64, 2048)


def test_a_built_in_draft_shares_the_targets_config(engine: Engine) -> None:
    config = Config({"model_type": "deepseek_v3"}, FILE)
    deployment = with_class_defaults(
        Deployment(Target("target", config), Draft("target", config, kind="mtp"), Serving(), None), engine
    )
    assert deployment.draft is not None
    assert deployment.draft.config is deployment.target.config
