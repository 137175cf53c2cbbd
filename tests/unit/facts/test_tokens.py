"""Token ids of both sides compared, whatever form the tokenizer.json has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specfix.deployment.load import load_model
from specfix.deployment.model import Draft, Model, Target
from specfix.errors import MissingFact
from specfix.facts.tokens import Vocabularies, token_map, vocabularies

BPE = {"model": {"type": "BPE", "vocab": {"a": 0, "\u0120b": 1}}}


def target(folder: Path, tokenizer: Any) -> Target:
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["A"]}')
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return load_model(str(folder), "target")


def draft(folder: Path, tokenizer: Any) -> Draft:
    target(folder, tokenizer)
    return load_model(str(folder), "draft")


def compared(tmp_path: Path, ours: Any, theirs: Any) -> Vocabularies:
    return vocabularies(target(tmp_path / "t", ours), draft(tmp_path / "d", theirs))


@pytest.mark.parametrize(
    ("tokenizer", "tokens"),
    [
        (BPE, {0: "a", 1: "\u0120b"}),
        ({"model": {"vocab": [["a", -1.0], ["b", -2.5]]}}, {0: "a", 1: "b"}),
        (
            {**BPE, "added_tokens": [{"id": 2, "content": "<s>"}, {"id": 0, "content": "A"}]},
            {0: "A", 1: "\u0120b", 2: "<s>"},
        ),
        ({**BPE, "added_tokens": [7, {"id": "2", "content": "x"}, {"content": "y"}]}, {0: "a", 1: "\u0120b"}),
    ],
)
def test_each_form_is_read(tmp_path: Path, tokenizer: Any, tokens: dict[int, str]) -> None:
    assert token_map(target(tmp_path / "t", tokenizer)) == tokens


@pytest.mark.parametrize(
    "tokenizer",
    [{}, {"model": None}, {"model": {"vocab": []}}, {"model": {"vocab": {"a": "0"}}}, {"model": {"vocab": [["a"], 3]}}],
)
def test_what_is_no_vocabulary_is_missing(tmp_path: Path, tokenizer: Any) -> None:
    with pytest.raises(MissingFact, match="a vocabulary"):
        token_map(target(tmp_path / "t", tokenizer))


def test_a_space_is_a_space_in_either_spelling(tmp_path: Path) -> None:
    theirs = {"model": {"vocab": [["a", 0.0], ["\u2581b", 0.0], ["c", 0.0]]}}
    found = compared(tmp_path, BPE, theirs)
    assert found == Vocabularies(2, 0) and found.alike and not found.foreign


def test_what_differs_is_counted_and_shown(tmp_path: Path) -> None:
    found = compared(tmp_path, BPE, {"model": {"vocab": {"a": 1, "b": 0}}})
    assert found == Vocabularies(2, 2, (0, "a", "b")) and found.foreign and not found.alike


def test_a_few_special_tokens_with_other_names_are_no_difference(tmp_path: Path) -> None:
    words = {f"w{i}": i for i in range(200)}
    found = compared(
        tmp_path, {"model": {"vocab": words | {"<im>": 200}}}, {"model": {"vocab": words | {"<|eot|>": 200}}}
    )
    assert found.differing == 1 and found.alike


def test_without_ids_in_common_nothing_can_be_said(tmp_path: Path) -> None:
    with pytest.raises(MissingFact, match="both sides"):
        compared(tmp_path, BPE, {"model": {"vocab": {"x": 7}}})


MERGES = [["a", "\u0120b"], ['"', "]}}"]]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "tokenizer",
    [
        {
            "added_tokens": [{"id": 3, "content": "x"}],
            "model": {"vocab": {"merges": 1, '"merges': 2}, "merges": MERGES},
        },
        {"model": {"vocab": {"merges": 1, '"merges': 2, "x": 3}, "merges": ["a \u0120b", "] }"]}},
        {"model": {"merges": MERGES, "vocab": {"merges": 1, '"merges': 2, "x": 3}}},
        {
            "model": {"merges": MERGES, "vocab": {"merges": 1, '"merges': 2}},
            "added_tokens": [{"id": 3, "content": "x"}],
        },
        {"model": {"merges": [], "x": {"vocab": 7}, "vocab": {"merges": 1, '"merges': 2, "x": 3}}},
    ],
)
def test_merges_are_left_out_wherever_they_stand(tmp_path: Path, tokenizer: Any, indent: int | None) -> None:
    read = target(tmp_path / "t", BPE)
    (tmp_path / "t" / "tokenizer.json").write_text(json.dumps(tokenizer, indent=indent))
    assert token_map(read) == {1: "merges", 2: '"merges', 3: "x"}


def test_what_stands_before_merges_is_read_as_ever(tmp_path: Path) -> None:
    read = target(tmp_path / "t", BPE)
    (tmp_path / "t" / "tokenizer.json").write_text('{"model": {"vocab": {"a": zero}, "merges": []}}')
    with pytest.raises(MissingFact, match="line 1 column 27: not valid JSON"):
        token_map(read)


def test_of_two_equal_files_one_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = target(tmp_path / "t", BPE), draft(tmp_path / "d", BPE)
    read: list[Model] = []

    def counted(model: Model) -> dict[int, str]:
        read.append(model)
        return token_map(model)

    monkeypatch.setattr("specfix.facts.tokens.token_map", counted)
    assert vocabularies(ours, theirs) == Vocabularies(2, 0)
    assert read == [ours]
