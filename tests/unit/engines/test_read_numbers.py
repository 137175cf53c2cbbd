"""Numbers that releases compare, read from small source trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from specfix.engines.facts.numbers import Captures, NumberFacts
from specfix.engines.readers.numbers import read_numbers
from specfix.engines.source.tree import SourceTree

SPECULATIVE = """
class SpeculativeConfig:
    def use_dflash(self) -> bool:
        return self.method == "dflash"

    def uses_draft_model(self) -> bool:
        return self.method == "draft_model"

    @property
    def max_num_new_slots_for_drafting(self) -> int:
{body}
"""
ADDED = """
        slots = 0
        if self.parallel_drafting:
            slots = self.num_speculative_tokens - 1
        if self.uses_draft_model():
            slots += 1
        return slots
"""
BY_METHOD = """
        tokens = self.num_speculative_tokens
        if self.use_dflash():
            return tokens
        if self.parallel_drafting:
            return tokens - 1
        return 0
"""
VLLM = """
class VllmConfig:
    def _set_max_num_scheduled_tokens(self):
        delta = self.speculative_config.max_num_new_slots_for_drafting{product}
        if {test}:
            raise ValueError

    def _set_cudagraph_sizes(self):
        default = 1024 if current_platform.is_device_capability_family(100) else 512
        most = min(self.scheduler_config.max_num_seqs * decode_query_len * 2, default)
        sizes = list(range(8, 256, 8)) + list(range(256, most + 1, 16))
"""
V2_RUNNER = "class GPUModelRunner:\n    def _dummy_run(self, num_tokens):\n        num_reqs = min({cap})\n"
SPECULATOR = "class S:\n    def __init__(self):\n        self.num_query_per_req = {rows}\n"


def read(folder: Path, files: Mapping[str, str]) -> tuple[NumberFacts, dict[str, str]]:
    for name, text in {"v1/worker/gpu_model_runner.py": "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    unknown: dict[str, str] = {}
    return read_numbers(SourceTree(folder), unknown), unknown


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ADDED, {"draft_model": "1", "draft_model+parallel": "k", "eagle3+parallel": "k-1", "dflash": "k-1"}),
        (BY_METHOD, {"draft_model+parallel": "k-1", "eagle3+parallel": "k-1", "dflash": "k", "dspark": "k-1"}),
    ],
)
def test_slots_by_method(tmp_path: Path, body: str, expected: dict[str, str]) -> None:
    facts, _ = read(tmp_path, {"config/speculative.py": SPECULATIVE.format(body=body)})
    assert facts.slots is not None
    assert expected.items() <= facts.slots.items()
    assert "eagle3" not in facts.slots


def test_slots_of_an_older_release(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {"config/speculative.py": "class SpeculativeConfig: ..."})
    assert facts.slots == {} and "numbers.slots" not in unknown


def test_slots_that_cannot_be_read(tmp_path: Path) -> None:
    body = "        return some(self.num_speculative_tokens)\n"
    facts, unknown = read(tmp_path, {"config/speculative.py": SPECULATIVE.format(body=body)})
    assert facts.slots is None and "hangs on" in unknown["numbers.slots"]


@pytest.mark.parametrize(
    ("product", "test", "held"),
    [
        (" * self.scheduler_config.max_num_seqs", "tokens - delta <= 0", "each"),
        ("", "max_num_batched_tokens <= delta", "once"),
        ("", "tokens <= 0", "none"),
    ],
)
def test_how_slots_are_held(tmp_path: Path, product: str, test: str, held: str) -> None:
    facts, _ = read(tmp_path, {"config/vllm.py": VLLM.format(product=product, test=test)})
    assert facts.slots_held == held


@pytest.mark.parametrize(
    ("cap", "expected"),
    [
        ("num_tokens, self.max_num_reqs", {"dflash": "k+1", "dspark": "k"}),
        ("num_tokens, self.max_num_tokens // self.speculator.num_query_per_req", {}),
    ],
)
def test_rows_of_the_draft_pass(tmp_path: Path, cap: str, expected: dict[str, str]) -> None:
    folder = "v1/worker/gpu/spec_decode"
    files = {
        "v1/worker/gpu/model_runner.py": V2_RUNNER.format(cap=cap),
        f"{folder}/dflash/speculator.py": SPECULATOR.format(rows="1 + self.num_speculative_steps"),
        f"{folder}/dspark/speculator.py": SPECULATOR.format(rows="self.num_speculative_steps"),
    }
    facts, _ = read(tmp_path, files)
    assert facts.uncapped_rows == expected


def test_rows_that_are_not_understood(tmp_path: Path) -> None:
    rows = SPECULATOR.format(rows="2 * self.num_speculative_steps")
    facts, unknown = read(tmp_path, {"v1/worker/gpu/spec_decode/dflash/speculator.py": rows})
    assert facts.uncapped_rows is None and "not understood" in unknown["numbers.uncapped_rows"]


def test_sizes_of_graphs(tmp_path: Path) -> None:
    files = {
        "config/vllm.py": VLLM.format(product="", test="True"),
        "config/compilation.py": "class C:\n    def adjust_cudagraph_sizes_for_spec_decode(self): ...\n",
    }
    facts, _ = read(tmp_path, files)
    assert facts.captures == Captures("2*(k+1)", 512, 1024, wide=True, rounded=True)


def test_sizes_of_graphs_with_the_scheduler(tmp_path: Path) -> None:
    scheduler = (
        "class SchedulerConfig:\n"
        "    def __post_init__(self):\n"
        "        self.cuda_graph_sizes = [min(self.max_num_seqs * 2, 512)]\n"
    )
    facts, _ = read(tmp_path, {"config/scheduler.py": scheduler, "config/vllm.py": "class VllmConfig: ..."})
    assert facts.captures == Captures("2", 512, 512, wide=False, rounded=False)


def test_sizes_of_graphs_that_are_elsewhere(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {})
    assert facts.captures is None and "numbers.captures" in unknown


def test_steps_of_several_layers(tmp_path: Path) -> None:
    files = {
        "v1/spec_decode/llm_base_proposer.py": "def propose(self): self.model(input_ids=1)\n",
        "v1/spec_decode/step3p5.py": "def propose(self, kwargs): kwargs['spec_step_idx'] = 0\n",
        "v1/worker/gpu/spec_decode/multi_module_mtp/speculator.py": "def f(self): self.model(spec_step_idx=1)\n",
    }
    facts, _ = read(tmp_path, files)
    assert facts.steps_numbered == ("V2",)
    assert facts.steps_by_type == ("step3p5_mtp",)


@pytest.mark.parametrize(("action", "refused"), [("raise ValueError", True), ("pass", False)])
def test_a_batch_below_its_requests(tmp_path: Path, action: str, refused: bool) -> None:
    scheduler = (
        "class SchedulerConfig:\n"
        "    def verify_max_model_len(self):\n"
        "        if self.max_num_batched_tokens < self.max_num_seqs:\n"
        f"            {action}\n"
    )
    assert read(tmp_path, {"config/scheduler.py": scheduler})[0].batch_below_requests is refused


SAMPLER = """
MAX_SPEC_LEN = {limit}


class RejectionSampler:
    def forward(self, metadata):
        {check}
        return metadata
"""


@pytest.mark.parametrize(
    ("limit", "check", "found"),
    [
        ("32", "assert metadata.max_spec_len <= MAX_SPEC_LEN", 32),
        ("32", "assert metadata.max_spec_len <= 64, 'too many'", 64),
        ("32", "assert metadata.other <= MAX_SPEC_LEN", 0),
        ("limit()", "assert metadata.max_spec_len <= MAX_SPEC_LEN", None),
        ("32", "assert metadata.max_spec_len == MAX_SPEC_LEN", None),
    ],
)
def test_drafts_that_the_sampler_takes(tmp_path: Path, limit: str, check: str, found: int | None) -> None:
    facts, unknown = read(tmp_path, {"v1/sample/rejection_sampler.py": SAMPLER.format(limit=limit, check=check)})
    assert facts.verified_at_most == found
    assert ("numbers.verified_at_most" in unknown) == (found is None)
