"""What --hf-overrides make of the target, and of no draft."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specfix.deployment import Deployment, Serving
from specfix.deployment.load import load_deployment
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck
from specfix.facts.class_defaults import with_class_defaults
from specfix.facts.lengths import derived_length
from specfix.facts.overrides import merged, places

TEXT = {"text_config": {"max_position_embeddings": 1024, "rope_parameters": {"rope_type": "yarn", "factor": 4.0}}}


def deployment(tmp_path: Path, overrides: Any, **config: Any) -> Deployment:
    config = {"architectures": ["A"], "model_type": "llama", "num_nextn_predict_layers": 1, **config}
    (tmp_path / "config.json").write_text(json.dumps(config))
    serving = Serving(method="mtp", flags={"hf_overrides": overrides})
    return load_deployment(str(tmp_path), None, serving, "h200")


def resolved(given: Deployment) -> Deployment:
    return with_class_defaults(given, find_engine("0.26.0"))


def test_the_target_is_as_the_flag_leaves_it_and_the_draft_as_the_file(tmp_path: Path) -> None:
    found = resolved(deployment(tmp_path, {"max_position_embeddings": 1024}, max_position_embeddings=512))
    assert found.draft is not None and found.draft.is_part_of(found.target)
    assert (found.target.integer("max_position_embeddings"), found.draft.integer("max_position_embeddings")) == (
        1024,
        512,
    )
    assert derived_length(found.target, find_engine("0.26.0")) == 1024
    assert found.target.at("max_position_embeddings").pointer == "--hf-overrides"
    assert found.draft.at("max_position_embeddings").pointer == "/max_position_embeddings"


@pytest.mark.parametrize("overrides", [None, {}, "text", [1]])
def test_without_a_mapping_nothing_changes(tmp_path: Path, overrides: Any) -> None:
    given = deployment(tmp_path, overrides, max_position_embeddings=512)
    found = resolved(given)
    assert found.draft is not None and found.draft.config is found.target.config
    assert found.target.config.values is given.target.config.values


def test_a_wrong_type_is_refused_by_the_flag_s_name(tmp_path: Path) -> None:
    with pytest.raises(CannotCheck, match="--hf-overrides"):
        resolved(deployment(tmp_path, {"max_position_embeddings": "much"}))


@pytest.mark.parametrize(
    ("values", "given", "made"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"rope_scaling": {"factor": 2}}, {"rope_parameters": {"x": 1}}, {"rope_parameters": {"x": 1}}),
        ({"rope_parameters": {"y": 1}}, {"rope_parameters": {"x": 1}}, {"rope_parameters": {"x": 1}}),
        (
            {"text_config": {"rope_parameters": {"rope_theta": 7}, "z": 0}},
            TEXT,
            {
                "text_config": {
                    "z": 0,
                    "max_position_embeddings": 1024,
                    "rope_parameters": {"rope_theta": 7, "rope_type": "yarn", "factor": 4.0},
                }
            },
        ),
        ({"other": {"a": 1}}, {"other": {"b": 1}}, {"other": {"b": 1}}),
    ],
)
def test_objects_are_merged_or_replaced(values: Any, given: Any, made: Any) -> None:
    before = json.dumps(values)
    assert merged(values, given, ("text_config",)) == made
    assert json.dumps(values) == before


def test_places_are_pointers_of_what_is_set() -> None:
    assert set(places(TEXT | {"a/b": 1})) == {
        "/text_config/max_position_embeddings",
        "/text_config/rope_parameters",
        "/a~1b",
    }
