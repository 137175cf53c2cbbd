"""Speculation on the CPU platform, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.hardware import CpuFacts, StandIn
from specfix.engines.readers.cpu import read_cpu
from specfix.engines.source.tree import SourceTree

RUNNER = "v1/worker/cpu_model_runner.py"
PLATFORM = "platforms/cpu.py"
STAND_INS = "utils/cpu_triton_utils.py"
SAMPLER = "v1/sample/rejection_sampler.py"

ASSIGNED = """
    import vllm.utils.cpu_triton_utils as cpu_tl

    class CPUModelRunner:
        def patch(self):
            vllm.v1.sample.rejection_sampler.expand_kernel = cpu_tl.expand_kernel
            vllm.v1.sample.rejection_sampler.greedy_kernel = cpu_tl.greedy_kernel
    """
REGISTERED = """
    def register():
        register_kernels({
            "vllm.v1.sample.rejection_sampler.greedy_kernel": cpu_tl._greedy,
            "vllm.v1.worker.table.Owner.kernel": cpu_tl._table,
        })
    """
FUNCTIONS = """
    class Wrapper:
        ...

    def _greedy(output, counts, limit, FLAG=False):
        ...

    def _table(tokens, table, BLOCK=16):
        ...

    def _expand(output, values, counts, MAX=None):
        {expand}

    expand_kernel = Wrapper(_expand)
    greedy_kernel = Wrapper(_greedy)
    """
RIGHT = "fill(output, int64(values), counts)"
LAUNCH = """
    def expand_batch_to_tokens(x, counts, n):
        expanded = x.new_empty(n)
        expand_kernel[(1,)](expanded, x, counts, MAX=8)
        return expanded

    def sample(grid):
        greedy_kernel[grid]({arguments})
    """


def read(tmp_path: Path, files: dict[str, str]) -> CpuFacts:
    for name, text in files.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return read_cpu(SourceTree(tmp_path / "vllm"), {})


def with_launch(tmp_path: Path, arguments: str, expand: str = RIGHT) -> CpuFacts:
    stand_ins = {STAND_INS: FUNCTIONS.format(expand=expand)}
    return read(tmp_path, {RUNNER: ASSIGNED, **stand_ins, SAMPLER: LAUNCH.format(arguments=arguments)})


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('assert self.speculative_config is None, "not here"', "not here"),
        ("assert self.speculative_config is None", "self.speculative_config is None"),
        ("if config.speculative_config is not None: raise ValueError('never')", "never"),
        ("if self.speculative_config: raise ValueError('never')", "never"),
        ("if self.speculative_config: self.draft()", None),
        ("assert self.lora_config is None, 'no adapters'", None),
    ],
)
def test_refusal(tmp_path: Path, line: str, text: str | None) -> None:
    assert read(tmp_path, {RUNNER: f"class Runner:\n    def f(self):\n        {line}\n"}).refuses == text


@pytest.mark.parametrize(
    ("arguments", "unexpected", "missing"),
    [
        ("a, b, c", (), ()),
        ("a, b, c, FLAG=True", (), ()),
        ("*args, **kwargs", (), ()),
        ("a, b, c, MODE=1", ("MODE",), ()),
        ("a, b, c, d, FLAG=True", ("FLAG",), ()),
        ("a, b, c, d, e", ("argument 5",), ()),
        ("a, b", (), ("limit",)),
    ],
)
def test_launches_against_stand_ins(
    tmp_path: Path, arguments: str, unexpected: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    found = with_launch(tmp_path, arguments).stand_ins
    failing = (StandIn("greedy_kernel", SAMPLER, 8, unexpected, missing),)
    assert found == (failing if unexpected or missing else ())


def test_kernels_of_the_second_runner_are_its_own(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {
            RUNNER: ASSIGNED,
            STAND_INS: FUNCTIONS.format(expand=RIGHT),
            "v1/worker/gpu/sampler.py": LAUNCH.format(arguments="a, b, c, MODE=1"),
        },
    )
    assert found.stand_ins == ()


KERNELS = """
    @triton.jit
    def greedy_kernel({greedy}):
        ...

    class Owner:
        @triton.jit
        def kernel({table}):
            ...

    @launcher(kernel=greedy_kernel)
    def _greedy(output):
        ...
    """


@pytest.mark.parametrize(
    ("greedy", "table", "failing"),
    [
        ("a, b, c, FLAG", "a, b", ()),
        ("a, b, c, FLAG, NEW", "a, b", (("greedy_kernel", ("NEW",), ()),)),
        ("a, b, c", "a", (("Owner.kernel", (), ("table",)),)),
    ],
)
def test_kernels_that_a_dispatcher_launches_by_their_parameters(
    tmp_path: Path, greedy: str, table: str, failing: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
) -> None:
    found = read(
        tmp_path,
        {
            PLATFORM: REGISTERED,
            STAND_INS: FUNCTIONS.format(expand=RIGHT),
            "v1/worker/table.py": KERNELS.format(greedy=greedy, table=table),
        },
    )
    assert tuple((each.kernel, each.unexpected, each.missing) for each in found.stand_ins) == failing


def test_a_stand_in_that_is_never_called(tmp_path: Path) -> None:
    """Assigned over the name, when a launcher has the kernel itself already; a registry reaches launchers."""
    kernels = {"v1/sample/kernels.py": KERNELS.format(greedy="a, b, c", table="a, b")}
    stand_ins = {STAND_INS: FUNCTIONS.format(expand=RIGHT)}
    found = read(tmp_path / "assigned", {RUNNER: ASSIGNED, **stand_ins, **kernels}).stand_ins
    assert [(each.kernel, each.unreached) for each in found] == [("greedy_kernel", True)]
    assert read(tmp_path / "registered", {PLATFORM: REGISTERED, **stand_ins, **kernels}).stand_ins == ()


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ("self.model = get()\n        self._setup_eagle3_aux_hidden_state_outputs()", True),
        ("self.model = get()\n        self.model.set_aux_hidden_state_layers(ids)", True),
        ("super().load_model()", True),
        ("self.model = get()", False),
    ],
)
def test_aux_setup(tmp_path: Path, load: str, expected: bool) -> None:
    text = f"class Runner:\n    def load_model(self):\n        {load}\n"
    assert read(tmp_path, {RUNNER: text}).aux_setup is expected


def test_aux_setup_of_the_gpu_runner_and_of_none(tmp_path: Path) -> None:
    assert read(tmp_path / "inherits", {RUNNER: "class Runner(Base):\n    pass\n"}).aux_setup is True
    unknown: dict[str, str] = {}
    assert read_cpu(SourceTree(tmp_path / "nothing"), unknown).aux_setup is None
    assert "cpu.aux_setup" in unknown


@pytest.mark.parametrize(
    ("expand", "copies"),
    [
        ("fill(_ensure_int64(output), values, counts)", True),
        ("fill(output.to(int64), values, counts)", True),
        ("wide = output.long(); fill(wide, values, counts)", True),
        ("wide = output.long(); fill(wide, values, counts); output.copy_(wide)", False),
        ("output[:] = values.long().repeat_interleave(counts)", False),
        (RIGHT, False),
    ],
)
def test_expanding_into_a_copy(tmp_path: Path, expand: str, copies: bool) -> None:
    assert with_launch(tmp_path, "a, b, c", expand).sampling_expands_copy is copies


def test_a_caller_that_goes_another_way_on_a_cpu(tmp_path: Path) -> None:
    caller = """
        def expand_batch_to_tokens(x, counts, n):
            if current_platform.is_cpu():
                return x.repeat_interleave(counts)
            expand_kernel[(1,)](x, counts)
        """
    files = {RUNNER: ASSIGNED, STAND_INS: FUNCTIONS.format(expand="fill(output.long())"), SAMPLER: caller}
    assert read(tmp_path, files).sampling_expands_copy is False


def test_no_stand_in_no_copy(tmp_path: Path) -> None:
    assert read(tmp_path, {RUNNER: "class Runner: ...\n"}).sampling_expands_copy is False


GUARDED = """
class Runner:
    def replace(self):
        from pkg import HAS_TRITON
        if HAS_TRITON:
            return
        import vllm.v1.sample.kernels
        vllm.v1.sample.kernels.fill = cpu_tl.fill
"""


@pytest.mark.parametrize(
    ("runner", "spared"), [(GUARDED, True), (GUARDED.replace("            return", "            pass"), False)]
)
def test_a_usable_triton_spares_the_stand_ins(runner: str, spared: bool, tmp_path: Path) -> None:
    (tmp_path / "v1" / "worker").mkdir(parents=True)
    (tmp_path / "v1" / "worker" / "cpu_model_runner.py").write_text(runner)
    assert read_cpu(SourceTree(tmp_path), {}).spared_by_triton is spared


ISA = """
    def _get_attn_isa(dtype, block_size, kv_cache_dtype=None):
        fp8_kv = is_quantized_kv_cache(kv_cache_dtype) if kv_cache_dtype else False
        supports_amx = torch.cpu._is_amx_tile_supported()
        supports_avx512 = torch.cpu._is_avx512_supported()
        if {test}:
            {end}
        return "vec"
    """
LACKING = "fp8_kv and not supports_amx and not supports_avx512"


@pytest.mark.parametrize(
    ("test", "end", "needs"),
    [
        (LACKING, "raise NotImplementedError", ("amx_tile", "avx512f")),
        ("fp8_kv and not supports_avx512", "raise NotImplementedError", ("avx512f",)),
        (LACKING, "dtype = None", ()),
        (LACKING.replace("and", "or"), "raise NotImplementedError", ()),
        ("fp8_kv and not supports_amx and not supports_neon", "raise NotImplementedError", ()),
        ("fp8_kv and not supports_amx and block_size", "raise NotImplementedError", ()),
        ("dtype and not supports_avx512", "raise NotImplementedError", ()),
    ],
)
def test_what_a_cache_in_fp8_asks_of_the_cpu(tmp_path: Path, test: str, end: str, needs: tuple[str, ...]) -> None:
    files = {"v1/attention/backends/cpu_attn.py": ISA.format(test=test, end=end)}
    assert read(tmp_path, files).fp8_cache_needs == needs


@pytest.mark.parametrize(
    ("returned", "heeded"),
    [("cache_config.kv_cache_memory_bytes or 0", True), ("cache_config.cpu_kvcache_space_bytes", False)],
)
def test_who_says_what_the_cache_takes(tmp_path: Path, returned: str, heeded: bool) -> None:
    worker = f"class Worker:\n    def determine_available_memory(self):\n        return self.{returned}\n"
    assert read(tmp_path, {"v1/worker/cpu_worker.py": worker}).cache_bytes_heeded is heeded


def test_a_worker_that_is_not_there(tmp_path: Path) -> None:
    found = read(tmp_path, {RUNNER: "class Runner: ...\n"})
    assert (found.fp8_cache_needs, found.cache_bytes_heeded) == ((), None)
