"""Which runner a release chooses, read from source and by the shipped facts."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.decisions import RunnerFacts
from specfix.engines.find import find_engine
from specfix.engines.readers.runner import read_runner
from specfix.engines.runner import VARIABLE, choose_runner
from specfix.engines.source.tree import SourceTree

CONFIG = """
    from .parts import PairConfig, ShareConfig

    class VllmConfig:
        share_config: ShareConfig
        pair_config: PairConfig | None = None

        @property
        def use_v2_model_runner(self):
            forced = envs.VLLM_USE_V2_MODEL_RUNNER
            if forced is not None:
                return forced
            if not HAS_TRITON:
                return False
            if self._get_v2_model_runner_unsupported_features():
                return False
            return True

        def _get_v2_model_runner_unsupported_features(self):
            lacking = []
            if self.share_config.stages > 1:
                lacking.append("stages")
            if self.pair_config is not None and self.pair_config.method == "odd":
                lacking.append(f"method {self.pair_config.method}")
            return lacking

        def _get_v1_model_runner_unsupported_features(self):
            lacking = []
            if self.pair_config.method == "new":
                lacking.append("the new method")
            return lacking

        def _validate_v2_model_runner(self):
            if not HAS_TRITON:
                raise ValueError("no Triton")

        def __post_init__(self):
            self._validate_v2_model_runner()
"""
PARTS = """
    class ShareConfig:
        stages: int = Field(default=1, ge=1)

    class PairConfig:
        method: str | None = None
        other: ShareConfig = None
"""
CHOOSES = {
    "config/vllm.py": CONFIG,
    "config/parts.py": PARTS,
    "envs.py": "VLLM_USE_V2_MODEL_RUNNER: bool | None = None",
}
BY_VARIABLE = {
    "config/vllm.py": "class VllmConfig: ...",
    "envs.py": "VLLM_USE_V2_MODEL_RUNNER: bool = False",
    "v1/worker/gpu_worker.py": "use_v2 = envs.VLLM_USE_V2_MODEL_RUNNER",
    "v1/worker/cpu_worker.py": "class CPUWorker: ...",
}


def read(root: Path, files: dict[str, str]) -> tuple[RunnerFacts, dict[str, str]]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_runner(SourceTree(root), unknown), unknown


def test_a_release_that_chooses_by_its_config(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, CHOOSES)
    assert [step.then for step in facts.steps] == ["V2", "V1", "V1", "V1", "V2"]
    assert [step.then for step in facts.unsupported] == ["stages", "method {pair_config.method}"]
    assert facts.forced_is_validated and facts.v2_needs_triton
    assert facts.defaults == {VARIABLE: None, "pair_config.method": None, "share_config.stages": 1}
    assert unknown == {"runner.cpu": "no v1/worker/cpu_worker.py"}
    here = {"HAS_TRITON": True}
    assert choose_runner(facts, here).runner == "V2"
    assert choose_runner(facts, {}).needs == ("HAS_TRITON",)
    assert choose_runner(facts, {**here, "share_config.stages": 2}).unsupported == ("stages",)
    forced = choose_runner(facts, {**here, VARIABLE: "1", "pair_config.method": "odd"})
    assert (forced.runner, forced.refusal) == ("V2", "the V2 runner does not support method odd")
    assert choose_runner(facts, {"HAS_TRITON": False, VARIABLE: "1"}).refusal == "the V2 runner needs Triton"
    kept = choose_runner(facts, {**here, VARIABLE: "0", "pair_config.method": "new"})
    assert (kept.runner, kept.refusal) == ("V1", "the V1 runner does not support the new method")
    assert choose_runner(facts, here, cpu=True).needs == ("whether the CPU worker has a V2 runner",)


def test_a_release_that_goes_by_the_variable_alone(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, BY_VARIABLE)
    assert not unknown
    assert not facts.forced_is_validated and not facts.v2_needs_triton
    assert choose_runner(facts, {}).runner == "V1"
    assert choose_runner(facts, {VARIABLE: "1"}).runner == "V2"
    assert choose_runner(facts, {VARIABLE: "1"}, cpu=True).runner == "V1"


def test_a_release_without_a_v2_runner(tmp_path: Path) -> None:
    facts, _ = read(tmp_path, {**BY_VARIABLE, "v1/worker/gpu_worker.py": "class Worker: ..."})
    assert choose_runner(facts, {VARIABLE: "1"}).runner == "V1"


def test_a_cpu_worker_that_asks_which_runner(tmp_path: Path) -> None:
    worker = "class CPUWorker:\n    def go(self):\n        return self.use_v2_model_runner"
    facts, _ = read(tmp_path, {**BY_VARIABLE, "v1/worker/cpu_worker.py": worker})
    assert facts.cpu == "as chosen"


def test_triton_may_be_asked_for_by_the_worker(tmp_path: Path) -> None:
    worker = """
        class Worker:
            def __init__(self):
                if self.use_v2 and not HAS_TRITON:
                    raise ValueError("no Triton")
    """
    facts, _ = read(tmp_path, {**BY_VARIABLE, "v1/worker/gpu_worker.py": worker})
    assert facts.v2_needs_triton


def values(architecture: str, **more: object) -> dict[str, object]:
    known = {
        "HAS_TRITON": True,
        "model_config.architectures": [architecture],
        "model_config.hf_config.canvas_length": None,
        "model_config.hf_config.quantization_config": None,
        "model_config.has_inner_state": False,
        "model_config.is_attention_free": False,
        "model_config.is_hybrid": False,
        "model_config.is_moe": False,
        "speculative_config.method": "eagle3",
    }
    return {**known, **{name.replace("__", "."): value for name, value in more.items()}}


@pytest.mark.parametrize(
    ("version", "given", "runner"),
    [
        ("0.12.0", {}, "V1"),
        ("0.21.0", {}, "V1"),
        ("0.21.0", {"envs__VLLM_USE_V2_MODEL_RUNNER": "1"}, "V2"),
        ("0.22.1", {}, "V1"),  # this release defaults Qwen3 alone to V2
        ("0.24.0", {}, "V2"),
        ("0.24.0", {"envs__VLLM_USE_V2_MODEL_RUNNER": "0"}, "V1"),
        ("0.24.0", {"parallel_config__pipeline_parallel_size": 2}, "V1"),
        ("0.24.0", {"HAS_TRITON": False}, "V1"),
        ("0.26.0", {}, "V2"),
        ("0.26.0", {"model_config__is_moe": True}, "V1"),
        ("0.26.0", {"parallel_config__pipeline_parallel_size": 2}, "V1"),
        ("0.33.0", {}, "V2"),
        ("0.33.0", {"model_config__is_moe": True}, "V2"),
        ("0.33.0", {"parallel_config__pipeline_parallel_size": 2}, "V2"),
        ("0.33.0", {"envs__VLLM_USE_V2_MODEL_RUNNER": "0"}, "V1"),
        ("0.33.0", {"HAS_TRITON": False}, "V1"),
    ],
)
def test_a_llama_with_eagle3_by_the_shipped_facts(version: str, given: dict[str, object], runner: str) -> None:
    choice = choose_runner(find_engine(version).runner, values("LlamaForCausalLM", **given))
    assert (choice.runner, choice.refusal) == (runner, None)


def test_other_architectures_and_methods_by_the_shipped_facts() -> None:
    assert choose_runner(find_engine("0.22.1").runner, values("Qwen3ForCausalLM")).runner == "V2"
    assert choose_runner(find_engine("0.24.0").runner, values("Gemma2ForCausalLM")).runner == "V1"
    assert choose_runner(find_engine("0.26.0").runner, values("Gemma2ForCausalLM")).runner == "V2"
    dspark = values("LlamaForCausalLM", speculative_config__method="dspark")
    assert choose_runner(find_engine("0.26.0").runner, dspark).runner == "V2"
    off = choose_runner(find_engine("0.33.0").runner, {**dspark, VARIABLE: "0"})
    assert off.refusal == "the V1 runner does not support dspark speculative decoding"


@pytest.mark.parametrize(("layers", "runner"), [(["sliding_attention", "full_attention"], "V2"), (None, "V1")])
def test_a_draft_of_mixed_attention_forces_v2(layers: list[str] | None, runner: str) -> None:
    draft = {"speculative_config.draft_model_config.hf_config.layer_types": layers}
    given = values("LlamaForCausalLM", speculative_config__method="dflash", model_config__is_hybrid=True)
    assert choose_runner(find_engine("0.26.0").runner, {**given, **draft}).runner == runner


def test_on_a_cpu_by_the_shipped_facts() -> None:
    for version in ("0.12.0", "0.22.1", "0.24.0", "0.33.0"):
        facts = find_engine(version).runner
        assert choose_runner(facts, values("LlamaForCausalLM", HAS_TRITON=False), cpu=True).runner == "V1"
    with_triton = choose_runner(find_engine("0.33.0").runner, values("LlamaForCausalLM"), cpu=True)
    assert with_triton.runner == "V2"
    assert choose_runner(find_engine("0.22.1").runner, values("Qwen3ForCausalLM"), cpu=True).runner == "V1"
