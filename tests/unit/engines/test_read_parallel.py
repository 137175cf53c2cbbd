"""A draft on several devices, read from small source trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.facts.numbers import ParallelFacts
from specfix.engines.readers.parallel import read_parallel
from specfix.engines.source.tree import SourceTree

SPECULATIVE = """
class SpeculativeConfig:
    @staticmethod
    def _verify_and_get_draft_tp(target, given):
        if given is None:
            given = target.tensor_parallel_size
        elif given not in (1, target.tensor_parallel_size):
            raise ValueError
        return given

    @staticmethod
    def create_draft_parallel_config(target, given):
        return ParallelConfig(pipeline_parallel_size={stages}, tensor_parallel_size=given)
"""
MODELS = """
class SupportsPP:
    supports_pp: ClassVar[Literal[True]] = True
    def make_empty_intermediate_tensors(self): ...

class Target(SupportsPP):
    def forward(self, input_ids, intermediate_tensors=None): ...

class Head(Target):
    def forward(self, input_ids, hidden_states): ...

class MixtureOfExperts: ...

class Experts(Target, MixtureOfExperts): ...

class Plain:
    def forward(self, input_ids, intermediate_tensors=None): ...

class Odd(unseen.Base): ...
"""
NAMES = {name: f"models:{name}" for name in ("Target", "Head", "Plain", "Odd", "Experts")}


def read(folder: Path, files: Mapping[str, str] | None = None) -> tuple[ParallelFacts, dict[str, str]]:
    given = {
        "config/speculative.py": SPECULATIVE.format(stages=1),
        "v1/worker/gpu_model_runner.py": "",
        "model_executor/models/models.py": MODELS,
        **(files or {}),
    }
    for name, text in given.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    unknown: dict[str, str] = {}
    return read_parallel(SourceTree(folder), unknown, MethodFacts((), NAMES, drafts=("Experts", "Head"))), unknown


def test_classes_that_support_no_stages(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path)
    assert facts.unpipelined == ("Head", "Plain")
    assert "parallel.unpipelined.Odd" in unknown
    assert facts.balanced == ("Experts",)


@pytest.mark.parametrize(("stages", "cut"), [("1", False), ("target.pipeline_parallel_size", True)])
def test_whether_a_draft_is_cut(tmp_path: Path, stages: str, cut: bool) -> None:
    facts, _ = read(tmp_path, {"config/speculative.py": SPECULATIVE.format(stages=stages)})
    assert facts.draft_pipelined is cut
    assert facts.draft_tp_refused is True


def test_a_config_without_these_functions(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {"config/speculative.py": "class SpeculativeConfig: ..."})
    assert facts.draft_pipelined is facts.draft_tp_refused is None
    assert {"parallel.draft_pipelined", "parallel.draft_tp_refused"} <= unknown.keys()


def test_one_token_is_handed_on(tmp_path: Path) -> None:
    runner = (
        "class GPUModelRunner:\n"
        "    def _pp_broadcast_prev_sampled_token_ids(self, ids):\n"
        "        assert ids.dim() == 2 and ids.shape[-1] == 1\n"
    )
    assert read(tmp_path)[0].one_token_broadcast is False
    assert read(tmp_path, {"v1/worker/gpu_model_runner.py": runner})[0].one_token_broadcast is True


def test_who_reads_the_drafts_tensor_parallel_size(tmp_path: Path) -> None:
    own = (
        "class DraftModelProposer:\n"
        "    def check(self):\n"
        "        draft = self.spec.draft_parallel_config.tensor_parallel_size\n"
        "        if draft != self.size:\n"
        "            raise ValueError\n"
    )
    facts, _ = read(tmp_path)
    assert facts.draft_tp_same == facts.draft_tp_heeded == ()
    facts, _ = read(tmp_path, {"v1/spec_decode/draft_model.py": own})
    assert facts.draft_tp_same == facts.draft_tp_heeded == ("draft_model",)
    facts, _ = read(tmp_path, {"v1/spec_decode/eagle.py": "x = spec.draft_parallel_config\n"})
    assert facts.draft_tp_heeded == ("", "draft_model")


@pytest.mark.parametrize(
    ("then", "counted"), [("raise ValueError", True), ("if not ray: raise ValueError", False), (None, None)]
)
def test_ranks_beyond_the_devices(tmp_path: Path, then: str | None, counted: bool | None) -> None:
    config = (
        "class ParallelConfig:\n    def __post_init__(self):\n        if self.world_size > 1:\n            count = 1\n"
    )
    if then is not None:
        config += f"        elif is_cuda() and device_count() < self.world_size:\n            {then}\n"
    facts, unknown = read(tmp_path, {"config/parallel.py": config})
    assert facts.ranks_counted is counted
    assert ("parallel.ranks_counted" in unknown) == (counted is None)


def test_context_parallelism(tmp_path: Path) -> None:
    mark = "supports_mtp_with_cp_non_trivial_interleave_size"
    files = {
        "v1/worker/cp_utils.py": f"assert layer_impl.{mark}\n",
        "v1/attention/backend.py": f"class AttentionImpl:\n    {mark}: bool = False\n",
        "v1/attention/backends/sparse.py": f"class SparseImpl:\n    {mark}: bool = True\n",
        "v1/worker/block_table.py": "dcp_world_size = 1\n",
        "v1/worker/gpu/block_table.py": "cp_size = 1\n",
        "v1/worker/gpu/model_runner.py": "",
    }
    facts, _ = read(tmp_path, files)
    assert (facts.interleave_checked, facts.interleaving) == (True, ("SparseImpl",))
    assert facts.shards_drafts == ("V1", "V2")
    whole = {"v1/worker/gpu/model_runner.py": "def f(spec): return replace(spec, dcp_sharded=False)\n"}
    assert read(tmp_path, whole)[0].shards_drafts == ("V1",)


def test_ranks_that_draft_together(tmp_path: Path) -> None:
    runner = (
        "def sample(self):\n"
        "    if not fits and self.parallel_config.data_parallel_size > 1:\n"
        "        self.drafter.dummy_run(num_tokens=1)\n"
    )
    assert read(tmp_path)[0].ranks_wait is False
    assert read(tmp_path, {"v1/worker/gpu_model_runner.py": runner})[0].ranks_wait is True


def test_a_schedule_that_is_ignored(tmp_path: Path) -> None:
    vllm = (
        "class VllmConfig:\n"
        "    def disable(self):\n"
        "        if self.parallel_config.data_parallel_size > 1:\n"
        "            speculative_config.num_speculative_tokens_per_batch_size = None\n"
    )
    assert read(tmp_path)[0].dynamic_off is False
    assert read(tmp_path, {"config/vllm.py": vllm})[0].dynamic_off is True


def test_experts(tmp_path: Path) -> None:
    balancer = "distributed/eplb/eplb_state.py"
    layers = "class M:\n    def __init__(self):\n        self.enable_eplb = parallel_config.enable_eplb\n"
    both = (
        "class EplbState:\n"
        "    def validate(self, new):\n"
        "        for model in self.model_states:\n"
        "            if model.num_routed_experts != new.num_routed_experts:\n"
        "                raise RuntimeError\n"
    )
    facts, _ = read(tmp_path)
    assert facts.same_experts is facts.one_balanced is False
    files = {balancer: "class EplbState: ...\n", "model_executor/models/deepseek_v2.py": layers}
    facts, _ = read(tmp_path, files)
    assert (facts.same_experts, facts.one_balanced) == (False, True)
    facts, _ = read(tmp_path, {balancer: both})
    assert (facts.same_experts, facts.one_balanced) == (True, False)


def test_a_connector_that_wants_whole_blocks(tmp_path: Path) -> None:
    vllm = (
        "class VllmConfig:\n"
        "    def adjust_dcp_kv_cache_interleave_size(self, cache):\n"
        "        local = min(g.block_size for g in cache.groups)\n"
        "        if self.kv_transfer_config is not None:\n"
        "            self.parallel_config.cp_kv_cache_interleave_size = local\n"
    )
    assert read(tmp_path)[0].connector_interleaves is False
    assert read(tmp_path, {"config/vllm.py": vllm})[0].connector_interleaves is True


def test_whether_experts_are_asked_for(tmp_path: Path) -> None:
    asks = (
        "class ModelConfig:\n"
        "    def _verify_with_expert_parallelism(self):\n"
        "        if not self.is_moe:\n"
        "            raise ValueError\n"
        "    def verify_with_parallel_config(self, parallel_config):\n"
        "        if parallel_config.enable_expert_parallel:\n"
        "            self._verify_with_expert_parallelism()\n"
    )
    assert read(tmp_path)[0].experts_needed is None
    assert read(tmp_path, {"config/model.py": asks})[0].experts_needed is True
    assert read(tmp_path, {"config/model.py": asks.replace("raise ValueError", "pass")})[0].experts_needed is False
