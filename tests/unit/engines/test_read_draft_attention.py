"""Attention for drafts, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.backends import DraftAttention
from specfix.engines.readers.draft_attention import read_draft_attention
from specfix.engines.source.tree import SourceTree

PROPOSER = "v1/spec_decode/eagle.py"
FLASHINFER = """
    class FlashInferMetadataBuilder:
        @classmethod
        def get_cudagraph_support(cls, vllm_config, kv_cache_spec):
            {first}
            if can_use_trtllm_attention(1, 2):
                return AttentionCGSupport.UNIFORM_BATCH
            return AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE
    """
SUPPORTS = """
    def supports_trtllm_attention():
        if current_platform.is_device_capability(90):
            return True
        return current_platform.is_device_capability_family(100)
    """


def read(tmp_path: Path, files: dict[str, str]) -> DraftAttention:
    for name, text in files.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return read_draft_attention(SourceTree(tmp_path / "vllm"))


@pytest.mark.parametrize(("value", "own"), [("spec_cfg.attention_backend", True), ("base.backend", False)])
def test_the_draft_s_own_backend(tmp_path: Path, value: str, own: bool) -> None:
    load = f"def load(base):\n    get_model(replace(base, backend={value}))"
    files = {
        PROPOSER: f"class EagleProposer: ...\n{load}",
        "v1/worker/gpu/spec_decode/dflash/utils.py": load,
        "v1/worker/gpu/spec_decode/utils.py": "def other(): ...",
    }
    assert read(tmp_path, files).own == {"V1": own, "V2.dflash": own}


def test_metadata_by_platform(tmp_path: Path) -> None:
    text = """
        class EagleProposer:
            def __init__(self):
                if current_platform.is_rocm():
                    types = [TritonAttentionMetadata]
                    types.append(AiterFlashAttentionMetadata)
                else:
                    types = (FlashAttentionMetadata,)
        """
    assert read(tmp_path, {PROPOSER: text}).chained == {
        "rocm": ("TritonAttentionMetadata", "AiterFlashAttentionMetadata"),
        "cuda": ("FlashAttentionMetadata",),
    }


def test_metadata_of_every_platform(tmp_path: Path) -> None:
    text = """
        class EagleProposer:
            def propose(self, attn_metadata):
                assert isinstance(attn_metadata, FlashAttentionMetadata)
        """
    assert set(read(tmp_path, {PROPOSER: text}).chained.values()) == {("FlashAttentionMetadata",)}


@pytest.mark.parametrize(
    ("first", "majors"),
    [
        ("pass", (9, 10)),
        ("if current_platform.is_device_capability(90): return AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE", (10,)),
        ("if use_fa2(): return AttentionCGSupport.UNIFORM_BATCH", None),
    ],
)
def test_gpus_whose_steps_are_captured_whole(tmp_path: Path, first: str, majors: tuple[int, ...] | None) -> None:
    files = {
        "v1/attention/backends/flashinfer.py": FLASHINFER.format(first=first),
        "utils/flashinfer.py": SUPPORTS,
    }
    assert read(tmp_path, files).flashinfer_graphs == majors


@pytest.mark.parametrize(("argument", "waits"), [("defer_finalize=False", True), ("other=None", False)])
def test_a_connector_that_waits(tmp_path: Path, argument: str, waits: bool) -> None:
    text = f"class Mixin:\n    def maybe_get_kv_connector_output(scheduler_output, {argument}): ..."
    assert read(tmp_path, {"v1/worker/kv_connector_model_runner_mixin.py": text}).connector_waits is waits


@pytest.mark.parametrize(("body", "one"), [("assert len(groups) == 1", True), ("return", False)])
def test_one_group(tmp_path: Path, body: str, one: bool) -> None:
    text = f"class EagleProposer:\n    def validate_same_kv_cache_group(self, config):\n        {body}"
    assert read(tmp_path, {PROPOSER: text}).one_group is one
