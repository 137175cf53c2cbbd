"""Where a patch of the shim must do nothing, and say so."""

from __future__ import annotations

import pytest

from .bench import MODULE, SETTINGS, Bench
from .fake_vllm import BLOCK_TABLE, EMPTY, EXPECTED, STAND_INS, TRITON_ABSENT
from .using_vllm import DRAFT

REPAIRED = {
    "cpu_sampling": {
        "utils/cpu_triton_utils": STAND_INS.replace(
            "fill(_ensure_int64(output), input_val)",
            "filled = _ensure_int64(output)\n        fill(filled, input_val)\n        output.copy_(filled)",
        )
    },
    "cpu_aux_setup": {
        "v1/worker/cpu_model_runner": """
    class CPUModelRunner:
        def load_model(self):
            self._setup_eagle3_aux_hidden_state_outputs()
"""
    },
    "cpu_stand_ins": {
        "utils/cpu_triton_utils": STAND_INS.replace(
            "is_greedy, max_spec_len):",
            "is_greedy, max_spec_len, uniform_probs, synthetic_conditional_rates, SYNTHETIC_MODE):",
        )
    },
    "sorted_draft_layers": {
        "v1/spec_decode/eagle": """
    class EagleProposer:
        def load_model(self, after):
            self.attn_layer_names = after - set()

        def groups(self):
            for name in sorted(self.attn_layer_names):
                yield name
"""
    },
    "slot_block_size": {
        "v1/spec_decode/eagle": """
    class EagleProposer:
        def initialize_attn_backend(self, kv_cache_config, kernel_block_sizes):
            self.block_size = self.draft_attn_groups[0].get_metadata_builder().kv_cache_spec.block_size
"""
    },
}


@pytest.mark.parametrize("patch", REPAIRED)
def test_inert_where_the_release_has_the_fix(bench: Bench, patch: str) -> None:
    bench.write(EXPECTED | REPAIRED[patch], patch)
    (line,) = bench.run(f"import {MODULE[patch]}")
    assert line.startswith(f"{patch}: did nothing: ")
    assert "Error" not in line


def test_inert_where_the_table_holds_the_managers_blocks(bench: Bench) -> None:
    """There the group's own size is the right one, and the same expression in the proposer is no mistake."""
    table = BLOCK_TABLE.replace(", kernel_block_size", "").replace("kernel_block_size", "block_size")
    bench.write(EXPECTED | {"v1/worker/block_table": table}, "slot_block_size")
    assert bench.run("import vllm.v1.spec_decode.eagle") == [
        "slot_block_size: did nothing: the block table holds the cache manager's blocks"
    ]


@pytest.mark.parametrize("patch", SETTINGS)
def test_inert_in_a_vllm_that_lacks_every_name(bench: Bench, patch: str) -> None:
    bench.write(EMPTY, patch)
    (line,) = bench.run(f"import {MODULE[patch]}")
    assert line.startswith(f"{patch}: did nothing: ")
    assert "Error" not in line


@pytest.mark.parametrize("patch", SETTINGS)
def test_silent_where_the_modules_are_never_imported(bench: Bench, patch: str) -> None:
    bench.write({"triton_utils/__init__": TRITON_ABSENT}, patch)
    assert bench.run() == []


def test_overrides_that_cannot_be_composed_are_left(bench: Bench) -> None:
    bench.write(EXPECTED, "draft_positions")
    (line,) = bench.run(f"""
        from vllm.config import ModelConfig
        assert ModelConfig("{DRAFT}", "draft", {{"model_type": "medusa"}}).max_model_len == 64
    """)
    assert "left as it was" in line
