"""Conversions of the speculators format, read from small sources in the shapes of the releases and then applied."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from specfix.engines.drafts import Refused, Unknown, converted
from specfix.engines.facts.speculative import Algorithm, Copied, SpeculatorsFacts
from specfix.engines.readers.speculators import ALGOS, ARGUMENTS, BASE, CONFIG, read_speculators
from specfix.engines.source.tree import SourceTree

UPDATES = """
    SUPPORTED = {}

    @register_speculator("eagle3")
    def update_eagle3(config_dict, pre_trained_config):
        pre_trained_config["draft_vocab_size"] = config_dict.get("draft_vocab_size")
        if config_dict.get("hidden") is not None:
            pre_trained_config["hidden"] = config_dict["hidden"]
        pre_trained_config["norm"] = config_dict.get("norm", True)
        table = {"qwen3": "QwenDraft", "llama": "LlamaDraft"}
        model_type = pre_trained_config.get("model_type", "llama")
        if model_type not in table:
            raise ValueError(model_type)
        pre_trained_config["architectures"] = [table[model_type]]
        if config_dict.get("ids"):
            pre_trained_config["aux_ids"] = config_dict["ids"]

    @register_speculator("flash")
    def update_flash(config_dict, pre_trained_config):
        pre_trained_config["architectures"] = ["FlashDraft"]
        ids = config_dict["ids"]
        pre_trained_config["inner"] = {"mask": config_dict["mask"], "layers": [i - 1 for i in ids], "one": 1}
        pre_trained_config["inner"]["causal"] = not config_dict.get("free", True)

    @register_speculator("flash2")
    def update_flash2(config_dict, pre_trained_config):
        update_flash(config_dict, pre_trained_config)
        pre_trained_config["architectures"] = ["Flash2Draft"]
        for key in ("rank", "top"):
            if config_dict.get(key) is not None:
                pre_trained_config["inner"][key] = config_dict[key]

    @register_speculator("spark")
    def update_spark(config_dict, pre_trained_config):
        own = config_dict.get("architectures") or []
        known = {"SparkDraft", "OmniDraft"}
        chosen = [each for each in own if each in known]
        pre_trained_config["architectures"] = chosen or ["SparkDraft"]
"""
BUILDER = """
    class SpeculatorsConfig:
        @classmethod
        def validate_speculators_config(cls, config_dict):
            try:
                spec_config = config_dict["speculators_config"]
                methods = spec_config["proposal_methods"]
                first_method = methods[0]
                _ = first_method["speculative_tokens"]
                _ = spec_config["verifier"]["name_or_path"]
            except KeyError as e:
                raise ValueError from e
            if "transformer_layer_config" not in config_dict:
                raise ValueError

        @classmethod
        def build_vllm_speculative_config(cls, config_dict):
            spec_config = config_dict["speculators_config"]
            methods = spec_config.get("proposal_methods")
            first_method = methods[0]
            number = first_method.get("speculative_tokens")
            result = {"method": config_dict.get("speculators_model_type"), "num_speculative_tokens": number}
            if result["method"] == "eagle3":
                result.update({"method": "eagle", "parallel": True})
            elif result["method"] == "flash2":
                result["method"] = "flash"
            return result
"""
SERVED = """
    def maybe_override_with_speculators(model, tokenizer, vllm_speculative_config=None):
        config_dict, _ = get_config_dict(model)
        speculators_config = config_dict.get("speculators_config")
        speculative_config = SpeculatorsConfig.extract(config_dict)
        #MERGE
        speculative_config["method"] = "x"
        speculative_config["model"] = model
        verifier_model = speculators_config["verifier"]["name_or_path"]
        #LOCAL
        model = tokenizer = verifier_model
        return model, tokenizer, speculative_config
"""
FILES = {ALGOS: UPDATES, BASE: BUILDER, CONFIG: SERVED}
PLACES = ("speculators_config.proposal_methods.0.speculative_tokens", "speculators_config.verifier.name_or_path")


def read(root: Path, files: dict[str, str]) -> tuple[SpeculatorsFacts, dict[str, str]]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_speculators(SourceTree(root), unknown), unknown


def made(facts: SpeculatorsFacts, algorithm: str, layer: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    return converted(facts, {"speculators_model_type": algorithm, "transformer_layer_config": layer or {}, **keys})


def test_each_shape_of_a_conversion(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, FILES)
    assert unknown == {}
    eagle = {"draft_vocab_size": None, "norm": True, "architectures": ["LlamaDraft"]}
    assert made(facts, "eagle3", ids=[], hidden=None) == eagle
    full = made(facts, "eagle3", {"model_type": "qwen3"}, ids=[1], hidden=8, norm=None, draft_vocab_size=9)
    assert full == {
        "model_type": "qwen3",
        "draft_vocab_size": 9,
        "hidden": 8,
        "norm": None,
        "architectures": ["QwenDraft"],
        "aux_ids": [1],
    }
    inner = {"mask": 3, "layers": [1, 4], "one": 1, "causal": False}
    assert made(facts, "flash", {"inner": {"left": 1}}, ids=[2, 5], mask=3) == {
        "architectures": ["FlashDraft"],
        "inner": inner,
    }
    second = made(facts, "flash2", ids=[2, 5], mask=3, free=False, rank=7, top=None)
    assert second == {"architectures": ["Flash2Draft"], "inner": {**inner, "causal": True, "rank": 7}}
    assert made(facts, "spark")["architectures"] == ["SparkDraft"]
    assert made(facts, "spark", architectures=["Training", "OmniDraft"])["architectures"] == ["OmniDraft"]
    for wrong in (("eagle3", {"model_type": "other"}), ("flash", {}), ("nothing", {})):
        with pytest.raises(Refused):
            made(facts, *wrong)


def test_what_the_speculative_config_gets(tmp_path: Path) -> None:
    facts, _ = read(tmp_path, FILES)
    assert facts.algorithms is not None
    assert {name: made.speculative for name, made in facts.algorithms.items() if made} == {
        "eagle3": {"method": "eagle", "parallel": True},
        "flash": {"method": "flash"},
        "flash2": {"method": "flash"},
        "spark": {"method": "spark"},
    }
    assert facts.required == (*PLACES, "transformer_layer_config")
    assert (facts.tokens, facts.tokens_as, facts.verifier) == (PLACES[0], "num_speculative_tokens", PLACES[1])
    assert (facts.user_config, facts.locked, facts.local_verifier) == ("dropped", (), True)


def test_a_users_config_is_merged_and_a_local_verifier_refused(tmp_path: Path) -> None:
    served = SERVED.replace("#MERGE", "speculative_config.update(vllm_speculative_config)")
    served = served.replace("#LOCAL", "if Path(verifier_model).exists():\n            raise ValueError")
    facts, _ = read(tmp_path, {**FILES, CONFIG: served})
    assert (facts.user_config, facts.locked, facts.local_verifier) == ("merged", ("method", "model"), False)


def test_the_first_releases_with_the_format(tmp_path: Path) -> None:
    base = BUILDER.replace("build_vllm_speculative_config", "convert_speculators_to_vllm")
    files = {
        ALGOS: UPDATES,
        BASE: base.replace('"num_speculative_tokens": number', '"num_lookahead_tokens": number'),
        CONFIG: """
            def maybe_override_with_speculators_target_model(model, tokenizer):
                config_dict, _ = get_config_dict(model)
                spec_config = config_dict.get("speculators_config", None)
                if spec_config is not None:
                    model = tokenizer = spec_config["verifier"]["name_or_path"]
                return model, tokenizer
        """,
        ARGUMENTS: """
            def create_speculative_config(self):
                if self.speculative_config is None:
                    if isinstance(hf_config, SpeculatorsConfig):
                        self.speculative_config = {"method": hf_config.method}
        """,
    }
    facts, unknown = read(tmp_path, files)
    assert (facts.tokens_as, facts.verifier, facts.user_config, unknown) == (
        "num_lookahead_tokens",
        PLACES[1],
        "kept",
        {},
    )


def test_a_release_without_the_format(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {"config/speculative.py": ""})
    assert facts.algorithms == {} and unknown == {}
    with pytest.raises(Refused):
        made(facts, "eagle3")


@pytest.mark.parametrize(
    "line",
    [
        'pre_trained_config["x"] = compute(config_dict)',
        'pre_trained_config[name] = config_dict["x"]',
        'if config_dict.get("x") == 1:\n            pre_trained_config["x"] = config_dict["x"]',
        'while config_dict:\n            pre_trained_config["x"] = 1',
        'pre_trained_config["architectures"] = names(config_dict)',
    ],
)
def test_what_is_not_understood_is_unknown(tmp_path: Path, line: str) -> None:
    text = f"""
    @register_speculator("one")
    def update_one(config_dict, pre_trained_config):
        pre_trained_config["architectures"] = ["OneDraft"]
        {line}

    @register_speculator("two")
    def update_two(config_dict, pre_trained_config):
        pre_trained_config["architectures"] = ["TwoDraft"]
        pre_trained_config["size"] = config_dict.get("size", 1)
    """
    facts, unknown = read(tmp_path, {**FILES, ALGOS: text})
    assert "speculators.algorithms.one" in unknown
    two = Algorithm({"": ("TwoDraft",)}, keys={"size": Copied("size", 1)}, speculative={"method": "two"})
    assert facts.algorithms == {"one": None, "two": two}
    with pytest.raises(Unknown):
        made(facts, "one")
