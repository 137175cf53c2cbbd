"""What platforms take by themselves, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.conditions import choose, holding
from specfix.engines.facts.backends import PlatformFacts
from specfix.engines.readers.platforms import read_platforms
from specfix.engines.source.tree import SourceTree

HOPPER: dict[str, object] = {"capability": [9, 0], "capability.major": 9}
BLACKWELL: dict[str, object] = {"capability": [10, 0], "capability.major": 10}


def read(tmp_path: Path, files: dict[str, str]) -> tuple[PlatformFacts, dict[str, str]]:
    for name, text in files.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_platforms(SourceTree(tmp_path / "vllm"), unknown), unknown


PRIORITIES = """
    def _get_backend_priorities(use_mla, device_capability, num_heads=None):
        if use_mla:
            tail = [AttentionBackendEnum.SPARSE]
            if num_heads is not None and num_heads <= 16:
                tail.insert(0, AttentionBackendEnum.SMALL)
            else:
                tail.append(AttentionBackendEnum.LARGE)
            return [AttentionBackendEnum.MLA, *tail]
        return [*([AttentionBackendEnum.NEW] if device_capability.major == 10 else []), AttentionBackendEnum.FAST]

    class CudaPlatformBase:
        @property
        def supported_dtypes(self):
            if self.has_device_capability(80):
                return [torch.bfloat16, torch.float16]
            return [torch.float16]
    """


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ({"use_mla": True, "num_heads": 8}, ["MLA", "SMALL", "SPARSE"]),
        ({"use_mla": True, "num_heads": 64}, ["MLA", "SPARSE", "LARGE"]),
        ({"use_mla": False, **HOPPER}, ["FAST"]),
        ({"use_mla": False, **BLACKWELL}, ["NEW", "FAST"]),
        ({"use_mla": False}, None),  # it hangs on the device
    ],
)
def test_backends_in_the_order_of_trying(tmp_path: Path, values: dict[str, object], order: list[str] | None) -> None:
    facts, unknown = read(tmp_path, {"platforms/cuda.py": PRIORITIES})
    steps = facts.backends["cuda"]
    assert steps is not None
    assert choose(steps, values).then == order
    assert "platforms.backends.cuda" not in unknown


def test_the_one_backend_that_a_platform_chooses(tmp_path: Path) -> None:
    cpu = """
        class CpuPlatform:
            @classmethod
            def get_attn_backend_cls(cls, selected_backend, attn_selector_config):
                if attn_selector_config.use_sparse:
                    raise NotImplementedError("no sparse attention")
                if selected_backend and selected_backend != AttentionBackendEnum.CPU_ATTN:
                    logger.info("not on a CPU")
                if attn_selector_config.use_mla:
                    return "vllm.v1.attention.backends.cpu.CPUMLABackend"
                return AttentionBackendEnum.CPU_ATTN.get_path()
        """
    registry = 'class AttentionBackendEnum(Enum):\n    CPU_MLA = "vllm.v1.attention.backends.cpu.CPUMLABackend"\n'
    facts, _ = read(tmp_path, {"platforms/cpu.py": cpu, "v1/attention/backends/registry.py": registry})
    steps = facts.backends["cpu"]
    assert steps is not None
    found = [choose(steps, {"use_sparse": sparse, "use_mla": mla}).then for sparse, mla in ((0, 0), (0, 1), (1, 0))]
    assert found == [["CPU_ATTN"], ["CPU_MLA"], None]


def test_types(tmp_path: Path) -> None:
    interface = """
        class Platform:
            @property
            def supported_dtypes(self):
                return [torch.bfloat16, torch.float16, torch.float32]
        """
    files = {"platforms/cuda.py": PRIORITIES, "platforms/rocm.py": "", "platforms/interface.py": interface}
    facts, _ = read(tmp_path, files)
    cuda, rocm = facts.dtypes["cuda"], facts.dtypes["rocm"]
    assert cuda is not None and rocm is not None
    assert choose(cuda, HOPPER).then == ["bfloat16", "float16"]
    assert choose(cuda, {"capability": [7, 5]}).then == ["float16"]
    assert choose(rocm, {}).then == ["bfloat16", "float16", "float32"]


CHOICE = """
    try:
        device_memory = current_platform.get_device_total_memory()
        device_name = current_platform.get_device_name().lower()
    except Exception:
        device_memory = 0
    if device_memory >= 70 * GiB_bytes and "a100" not in device_name:
        default_max_num_batched_tokens = {UsageContext.LLM_CLASS: 16384, UsageContext.OPENAI_API_SERVER: 8192}
        default_max_num_seqs = {UsageContext.LLM_CLASS: 1024, UsageContext.OPENAI_API_SERVER: 1024}
    else:
        default_max_num_batched_tokens = {UsageContext.LLM_CLASS: 8192, UsageContext.OPENAI_API_SERVER: 2048}
        default_max_num_seqs = {UsageContext.LLM_CLASS: 256, UsageContext.OPENAI_API_SERVER: 256}
    if current_platform.is_cpu():
        default_max_num_batched_tokens = {UsageContext.LLM_CLASS: 4096 * world_size}
        default_max_num_seqs = {UsageContext.LLM_CLASS: 256 * world_size}
    """
NEW = """class EngineArgs:
    def get_batch_defaults(cls, world_size):
{}
        return (default_max_num_batched_tokens, default_max_num_seqs)
"""
OLDER = """class EngineArgs:
    def _set_default_args(self, usage_context, model_config):
        if model_config.runner_type != "pooling":
            self.enable_chunked_prefill = True
{}
        if self.max_num_seqs is None:
            self.max_num_seqs = min(default_max_num_seqs[usage_context], 8)
"""


@pytest.mark.parametrize("form", [NEW, OLDER])
def test_batches(tmp_path: Path, form: str) -> None:
    lines = "\n".join("    " + line for line in CHOICE.splitlines())
    if form is OLDER:  # which takes the number of workers from its own fields
        size = "self.pipeline_parallel_size * self.tensor_parallel_size"
        branch = "        if current_platform.is_cpu():\n"
        lines = lines.replace(branch, f"{branch}            world_size = {size}\n")
    head = "from vllm.memory import GiB_bytes\n"
    facts, unknown = read(
        tmp_path,
        {
            "engine/arg_utils.py": head + form.format(lines),
            "memory.py": "GiB_bytes = 1 << 30\n",
            "platforms/cuda.py": PRIORITIES,
            "platforms/cpu.py": "",
        },
    )
    tokens, seqs = facts.max_num_batched_tokens["cuda"], facts.max_num_seqs["cuda"]
    assert tokens is not None and seqs is not None
    large = {"device_memory": 141 << 30, "device_name": "nvidia h200"}
    assert choose(tokens, large).then == {"LLM_CLASS": 16384, "OPENAI_API_SERVER": 8192}
    assert choose(seqs, {**large, "device_name": "nvidia a100"}).then["LLM_CLASS"] == 256
    assert choose(tokens, {"device_memory": 24 << 30}).then["OPENAI_API_SERVER"] == 2048
    cpu = facts.max_num_batched_tokens["cpu"]
    assert cpu is not None
    assert [step.then for step in cpu] == [{"LLM_CLASS": 4096}]
    assert facts.per_worker == ("cpu",)
    assert not {name for name in unknown if "max_num" in name}


def test_what_a_platform_sets_anyway(tmp_path: Path) -> None:
    cpu = """
        class CpuPlatform:
            @classmethod
            def check_and_update_config(cls, vllm_config):
                scheduler_config = vllm_config.scheduler_config
                scheduler_config.async_scheduling = False
                compilation_config = vllm_config.compilation_config
                if vllm_config.compilation_config.mode == CompilationMode.VLLM_COMPILE:
                    compilation_config.mode = CompilationMode.DYNAMO_TRACE_ONCE
                if vllm_config.lora_config is not None:
                    compilation_config.mode = CompilationMode.NONE
                vllm_config.cache_config.space = how_much()
                if cls.supports_it():
                    scheduler_config.chunked = True
                if not scheduler_config.async_scheduling:
                    scheduler_config.stale = True
                for one in compilation_config.sizes:
                    compilation_config.looped = one
                if vllm_config.speculative_config is None:
                    return
                compilation_config.level = 0
        """
    facts, _ = read(tmp_path, {"platforms/cpu.py": cpu})
    forced = facts.forced["cpu"]
    assert forced.keys() == {"scheduler_config.async_scheduling", "compilation_config.mode", "compilation_config.level"}
    compiled: dict[str, object] = {"compilation_config.mode": "VLLM_COMPILE", "lora_config": None}
    sure, maybe, _ = holding(forced["compilation_config.mode"], compiled)
    assert [step.then for step in sure] == ["DYNAMO_TRACE_ONCE"]
    assert not maybe
    assert holding(forced["compilation_config.level"], {"speculative_config": None})[0] == []
    assert [step.then for step in forced["scheduler_config.async_scheduling"]] == [False]


def test_async_scheduling_where_nobody_says(tmp_path: Path) -> None:
    config = """
        Drafts = Literal["eagle", "eagle3", Small]
        Small = Literal["mtp"]

        class VllmConfig:
            def __post_init__(self):
                if self.broken:
                    raise ValueError("broken")
                reason = None
                if not self.use_v2_model_runner:
                    if self.speculative_config is not None and self.speculative_config.method not in get_args(Drafts):
                        reason = f"{self.speculative_config.method} drafts"
                    elif self.parallel_config.pipeline_parallel_size > 1:
                        reason = "pipelines"
                if self.scheduler_config.async_scheduling:
                    if reason is not None:
                        raise ValueError(reason)
                elif self.scheduler_config.async_scheduling is None:
                    if reason is not None:
                        self.scheduler_config.async_scheduling = False
                    else:
                        self.scheduler_config.async_scheduling = True
        """
    steps = read(tmp_path, {"config/vllm.py": config})[0].async_scheduling
    base: dict[str, object] = {"use_v2_model_runner": False, "parallel_config.pipeline_parallel_size": 1}
    found = {name: choose(steps, {**base, "speculative_config.method": name}).then for name in ("mtp", "medusa")}
    assert found == {"mtp": True, "medusa": False}
    assert choose(steps, {**base, "use_v2_model_runner": True, "speculative_config.method": "medusa"}).then is True
    pipelines = {**base, "speculative_config": None, "parallel_config.pipeline_parallel_size": 2}
    assert choose(steps, pipelines).then is False


def test_an_empty_tree_is_unknown_not_wrong(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {"platforms/cuda.py": ""})
    assert (facts.backends, facts.dtypes) == ({"cuda": None}, {"cuda": None})
    assert {f"platforms.{fact}.cuda" for fact in ("backends", "dtypes", "max_num_seqs")} <= unknown.keys()
    assert facts.async_scheduling == ()
