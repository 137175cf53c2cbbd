"""What a release does with recurrent layers, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.facts.recurrent import RecurrentFacts
from specfix.engines.readers.recurrent import (
    ARGUMENTS,
    CONFIGS,
    DELTA,
    LAYERS,
    MIXER,
    MODELS,
    RUNNER,
    SHAPES,
    read_recurrent,
)
from specfix.engines.source.tree import SourceTree

METHODS = MethodFacts(methods=("ngram",), architectures={"Hybrid": "hybrid:Hybrid"})
REFUSAL = """
    class MambaBase:
        def get_kv_cache_spec(self, vllm_config):
            if (vllm_config.speculative_config is not None
                    and vllm_config.model_config.hf_config.model_type not in ["first", "second"]):
                raise NotImplementedError("Mamba with speculative decoding is not supported yet.")
    """
SHAPE = """
    class MambaStateShapeCalculator:
        @classmethod
        def mamba2_state_shape(cls, heads, num_spec=0): ...
    """
USE = """
    class MambaMixer2:
        def get_state_shape(self):
            return MambaStateShapeCalculator.mamba2_state_shape(heads=1, num_spec=self.num_spec)
    """
MODEL = """
    class Hybrid:
        supports_mamba_prefix_caching = True

        @classmethod
        def get_mamba_state_shape_from_config(cls, vllm_config):
            return MambaStateShapeCalculator.mamba2_state_shape(heads=1{more})
    """
CONFIG = """
    class MambaModelConfig:
        @classmethod
        def verify_and_update_config(cls, vllm_config):
            if cache_config.enable_prefix_caching:
    {body}
    """
CHOICE = """
                if cache_config.mamba_cache_mode == "none":
                    cache_config.mamba_cache_mode = (
                        "all" if model_config.supports_mamba_prefix_caching else "align")
    """
DRAFTING = """
                if cache_config.mamba_cache_mode == "none":
                    if vllm_config.speculative_config is not None:
                        cache_config.mamba_cache_mode = "align"
                    else:
                        cache_config.mamba_cache_mode = (
                            "all" if model_config.supports_mamba_prefix_caching else "align")
    """
REFUSED = """
                if cache_config.mamba_cache_mode == "align":
                    assert not vllm_config.speculative_config, "not compatible"
    """
RACE = """
    class GPUModelRunner:
        def _update_states(self):
            {wait}

        def _prepare_inputs(self):
            if self.cache_config.mamba_cache_mode == "{asked}": ...
            prev = self.prev_positions.np[:n]
            self.num_accepted_tokens.np[:n] = self.input_batch.num_accepted_tokens_cpu[prev]

        def _update_states_after_model_execute(self):
            if self.cache_config.mamba_cache_mode == "align":
                self.num_accepted_tokens_event.record()
    """
DECODE = """
    class GDNAttentionMetadataBuilder:
        def build(self, num_accepted_tokens, num_decode_draft_tokens_cpu):
            {test}
    """


def read(tmp_path: Path, files: dict[str, str]) -> RecurrentFacts:
    for name, text in files.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return read_recurrent(SourceTree(tmp_path / "vllm"), METHODS)


def config(*parts: str) -> str:
    return dedent(CONFIG).replace("{body}", "".join(parts).replace("\n    ", "\n") or "            pass")


def test_a_gate_and_those_it_lets_through(tmp_path: Path) -> None:
    facts = read(tmp_path, {LAYERS: REFUSAL})
    assert (facts.refuses, facts.exempt) == (True, ("first", "second"))


def test_no_gate(tmp_path: Path) -> None:
    assert read(tmp_path, {LAYERS: "class MambaBase: ..."}).refuses is False


@pytest.mark.parametrize(("more", "narrow"), [("", ("Hybrid",)), (", num_spec=k", ())])
def test_a_class_that_leaves_drafts_out(tmp_path: Path, more: str, narrow: tuple[str, ...]) -> None:
    model = MODEL.replace("{more}", more)
    files = {SHAPES: SHAPE, MIXER: USE, "model_executor/models/hybrid.py": model}
    assert read(tmp_path, files).narrow == narrow


def test_no_class_is_narrow_where_layers_ask_for_no_more(tmp_path: Path) -> None:
    files = {SHAPES: SHAPE, "model_executor/models/hybrid.py": MODEL.replace("{more}", "")}
    assert read(tmp_path, files).narrow == ()


@pytest.mark.parametrize(("parts", "mode"), [((CHOICE,), "all"), ((DRAFTING,), "align")])
def test_the_mode_that_caching_brings(tmp_path: Path, parts: tuple[str, ...], mode: str) -> None:
    facts = read(tmp_path, {MODELS: config(*parts), "model_executor/models/hybrid.py": MODEL.replace("{more}", "")})
    assert (facts.caching, facts.cached_mode, facts.cacheable) == ("all", mode, ("Hybrid",))
    assert facts.align_refuses is False


SUPPORTED = """
    class ModelConfig:
        def is_prefix_caching_supported(self):
            if attn_type == "hybrid":
                return True
    """


@pytest.mark.parametrize(
    ("default", "cached"),
    [
        ("model_config.is_prefix_caching_supported", True),
        ("model_config.is_prefix_caching_supported and not model_config.is_hybrid", False),
        ("model_config.is_prefix_caching_supported and not model_config.is_moe", True),
    ],
)
def test_a_hybrid_model_is_cached_unless_the_default_leaves_it_out(tmp_path: Path, default: str, cached: bool) -> None:
    arguments = f"def defaults(model_config):\n    default_prefix_caching = ({default})\n"
    facts = read(tmp_path, {MODELS: config(CHOICE), CONFIGS[0]: SUPPORTED, ARGUMENTS: arguments})
    assert facts.cached is cached


def test_align_refuses(tmp_path: Path) -> None:
    assert read(tmp_path, {MODELS: config(CHOICE, REFUSED)}).align_refuses is True


@pytest.mark.parametrize(("asked", "follows"), [("all", True), ("align", False)])
def test_a_runner_that_follows_drafts_in_mode_all(tmp_path: Path, asked: str, follows: bool) -> None:
    files = {MODELS: config(CHOICE), RUNNER: RACE.format(wait="pass", asked=asked)}
    assert read(tmp_path, files).all_drafts is follows


@pytest.mark.parametrize(
    ("wait", "raced"), [("self.condense()", True), ("self.num_accepted_tokens_event.synchronize()", False)]
)
def test_counts_that_nothing_waits_for(tmp_path: Path, wait: str, raced: bool) -> None:
    assert read(tmp_path, {RUNNER: RACE.format(wait=wait, asked="align")}).counts_raced is raced


@pytest.mark.parametrize(
    ("test", "stale"),
    [
        ("if num_decode_draft_tokens_cpu[mask].sum().item() == 0: ...", True),
        ("if num_spec_decodes == 0: ...", False),
    ],
)
def test_a_step_without_drafts(tmp_path: Path, test: str, stale: bool) -> None:
    assert read(tmp_path, {DELTA: DECODE.format(test=test)}).stale_without_drafts is stale


def test_what_is_not_there_is_not_known(tmp_path: Path) -> None:
    facts = read(tmp_path, {"__init__.py": ""})
    assert facts.stale_without_drafts is None
    assert facts.counts_raced is None
    assert facts.cached_mode is None


@pytest.mark.parametrize(("action", "needs"), [("raise ValueError", True), ("pass", False)])
def test_a_size_that_needs_the_cache(tmp_path: Path, action: str, needs: bool) -> None:
    whole = f"""
        class VllmConfig:
            def validate_mamba_block_size(self):
                mamba_block_size_is_set = self.cache_config.mamba_block_size is not None
                if mamba_block_size_is_set and not self.cache_config.enable_prefix_caching:
                    {action}
        """
    assert read(tmp_path, {"config/vllm.py": whole}).size_needs_cache is needs
