"""vLLM's own config classes, in the forms that its registry has had."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from specfix.engines.readers.configs import read_configs
from specfix.engines.source.tree import SourceTree

OLD = """
from vllm.transformers_utils.configs import FirstConfig, SecondConfig
_CONFIG_REGISTRY_OVERRIDE_HF: dict = {"second": SecondConfig}
_CONFIG_REGISTRY: dict = {"first": FirstConfig, **_CONFIG_REGISTRY_OVERRIDE_HF}
"""
NEW = """
_CONFIG_REGISTRY: dict = LazyConfigDict(
    first="FirstConfig",
    **{"second": "SecondConfig"},
    upstream="LlamaConfig",
)
"""
CLASSES = """
from transformers import PreTrainedConfig

class InnerConfig(PreTrainedConfig):
    def __init__(self, width=2, **kwargs):
        self.width = width
        super().__init__(**kwargs)

class FirstConfig(PreTrainedConfig):
    sub_configs = {"text_config": InnerConfig}

    def __init__(self, size=1, **kwargs):
        self.size = size
        super().__init__(**kwargs)

class SecondConfig(FirstConfig):
    pass
"""


HEADS_WITHIN = """
def get_hf_text_config(config):
    text_config = config.get_text_config()
    if text_config is not config and not hasattr(text_config, "num_attention_heads"):
        raise ValueError
    return text_config
"""


def tree(folder: Path, registry: str, function: str = HEADS_WITHIN) -> SourceTree:
    configs = folder / "transformers_utils" / "configs"
    configs.mkdir(parents=True)
    (configs.parent / "config.py").write_text(textwrap.dedent(registry) + function)
    (configs / "some.py").write_text(CLASSES)
    return SourceTree(folder)


@pytest.mark.parametrize("registry", [OLD, NEW])
def test_classes_by_model_type(registry: str, tmp_path: Path) -> None:
    unknown: dict[str, str] = {}
    facts = read_configs(tree(tmp_path, registry), unknown)
    assert facts.types is not None and facts.types["first"] == "FirstConfig" and facts.types["second"] == "SecondConfig"
    assert facts.classes["SecondConfig"].defaults == {"size": 1}
    assert facts.classes["FirstConfig"].parts == {"text_config": "InnerConfig"}
    assert facts.classes["InnerConfig"].base == "PreTrainedConfig"
    if "upstream" in registry:
        assert facts.classes["LlamaConfig"].base == "LlamaConfig"
    assert not unknown


def test_a_release_without_a_registry(tmp_path: Path) -> None:
    unknown: dict[str, str] = {}
    assert read_configs(tree(tmp_path, "OTHER = {}"), unknown).types is None
    assert "configs.types" in unknown


def test_architectures_that_stand_for_a_model_type(tmp_path: Path) -> None:
    table = '_ARCHITECTURE_TO_MODEL_TYPE: dict[str, str] = {"SecondForCausalLM": "second"}\n'
    assert read_configs(tree(tmp_path, NEW + table), {}).typed == ("SecondForCausalLM",)
    assert read_configs(tree(tmp_path / "older", NEW), {}).typed == ()


@pytest.mark.parametrize(
    ("function", "needed"),
    [
        (HEADS_WITHIN, True),
        ('def get_hf_text_config(c):\n    assert hasattr(text_config, "num_attention_heads")\n', True),
        ("def get_hf_text_config(config):\n    return config.get_text_config()\n", False),
        ("", None),
    ],
)
def test_a_text_config_needs_heads(tmp_path: Path, function: str, needed: bool | None) -> None:
    unknown: dict[str, str] = {}
    assert read_configs(tree(tmp_path, NEW, function), unknown).heads_within is needed
    assert ("configs.heads_within" in unknown) is (needed is None)
