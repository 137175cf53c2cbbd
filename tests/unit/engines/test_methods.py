"""Methods and architectures, read from a small registry."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.find import find_engine, shipped_versions
from specfix.engines.readers.methods import read_methods
from specfix.engines.source.tree import SourceTree

FILES = {
    "config/speculative.py": """
        MTPTypes = Literal["a_mtp", "mtp"]
        EagleTypes = Literal["eagle", MTPTypes]
        SpeculativeMethod = Literal["ngram", EagleTypes, Literal["dflash"]]
    """,
    "model_executor/models/registry.py": """
        _TEXT = {"OneForCausalLM": ("one", "One"), **{"TwoModel": ("two", "Two")}}
        _SPECULATIVE_DECODING_MODELS = {"OneMTP": ("vllm.models.one", "OneMTP")}
        _PREVIOUSLY_SUPPORTED_MODELS = {"ZeroForCausalLM": "0.1"}
        _MULTIMODAL_MODELS = {"TwoModel": ("two", "Two")}
        _VLLM_MODELS = {**_TEXT, **_SPECULATIVE_DECODING_MODELS}
    """,
}
# what is read elsewhere: test_read_draft_classes
NOT_IN_REGISTRY = {
    f"methods.{fact}"
    for fact in ("suffixes", "renamed", "drafters", "extra_slots_refuse", "mla_types", "mla_types_of_heads")
}


def read(root: Path, files: dict[str, str]) -> tuple[MethodFacts, dict[str, str]]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_methods(SourceTree(root), unknown), unknown


def test_named_literals_and_dicts_are_put_in_their_places(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, FILES)
    assert facts.methods == ("ngram", "eagle", "a_mtp", "mtp", "dflash")
    assert facts.architectures == {
        "OneForCausalLM": "one:One",
        "OneMTP": "vllm.models.one:OneMTP",
        "TwoModel": "two:Two",
    }
    assert facts.drafts == ("OneMTP",)
    assert facts.dropped == {"ZeroForCausalLM": "0.1"}
    assert facts.multimodal == ("TwoModel",)
    assert set(unknown) == NOT_IN_REGISTRY


@pytest.mark.parametrize("file", ["config/__init__.py", "config.py"])
def test_methods_of_the_releases_before_the_config_was_split(tmp_path: Path, file: str) -> None:
    facts, unknown = read(tmp_path, {file: 'SpeculativeMethod = Literal["ngram",\n    "eagle"]'})
    assert facts.methods == ("ngram", "eagle")
    assert "methods.methods" not in unknown


def test_a_source_that_states_neither(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {"model_executor/models/registry.py": "", "config/speculative.py": ""})
    assert facts == MethodFacts((), {})
    stated = ("methods", "architectures", "drafts", "dropped", "multimodal")
    assert set(unknown) == {f"methods.{fact}" for fact in stated} | NOT_IN_REGISTRY


def test_the_shipped_releases() -> None:
    for version in shipped_versions():
        facts = find_engine(version).methods
        assert {"eagle", "eagle3", "ngram", "draft_model"} <= set(facts.methods)
        heads = {"Eagle3LlamaForCausalLM", "LlamaForCausalLMEagle3"} & facts.architectures.keys()  # one or both
        assert heads and all(facts.architectures[head].startswith("llama_eagle3:") for head in heads)
        assert heads <= set(facts.drafts)
    assert "dflash" not in find_engine("0.16.0").methods.methods
    assert "dspark" in find_engine("0.33.0").methods.methods
    assert "medusa" not in find_engine("0.33.0").methods.methods


TABLE = """
    _SUFFIX_TO_DEFAULTS: list[tuple[str, tuple[str, str]]] = [
        ("ForCausalLM", ("generate", "none")),
        ("Model", ("pooling", "embed")),
    ]
"""
WRITTEN_OUT = """
    class _ModelRegistry:
        def _normalize_archs(self, architectures):
            for arch in architectures:
                found.append(arch.replace("ForSequenceClassification", "ForCausalLM"))
"""


@pytest.mark.parametrize(
    ("file", "text", "suffixes"),
    [
        ("config/model.py", TABLE, ("ForCausalLM", "Model")),
        ("config/__init__.py", TABLE, ("ForCausalLM", "Model")),
        ("model_executor/models/registry.py", WRITTEN_OUT, ("ForSequenceClassification", "ForCausalLM")),
        ("config/model.py", "_SUFFIX_TO_DEFAULTS = made()", None),
        ("config/model.py", "", None),
    ],
)
def test_endings_that_stand_for_one_another(
    tmp_path: Path, file: str, text: str, suffixes: tuple[str, ...] | None
) -> None:
    facts, unknown = read(tmp_path, {**FILES, file: dedent(FILES.get(file, "")) + dedent(text)})
    assert facts.suffixes == suffixes
    assert ("methods.suffixes" in unknown) == (suffixes is None)
