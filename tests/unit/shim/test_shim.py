"""The shim in processes of their own, on vLLMs that we wrote: what it does, and that nothing can make it raise."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specfix.shim import SCHEMA, shim_files

from .fake_vllm import BLOCK_TABLE, EMPTY, EXPECTED, SAMPLER, STAND_INS, TRITON_ABSENT, write_vllm

DRAFT = "org/draft"
SETTINGS: dict[str, dict[str, Any]] = {
    "cpu_sampling": {},
    "cpu_aux_setup": {},
    "cpu_stand_ins": {},
    "sorted_draft_layers": {},
    "slot_block_size": {},
    "draft_positions": {"draft": DRAFT, "max_position_embeddings": 1024},
}
MODULE = {
    **dict.fromkeys(("cpu_sampling", "cpu_aux_setup", "cpu_stand_ins"), "vllm.v1.worker.cpu_model_runner"),
    **dict.fromkeys(("sorted_draft_layers", "slot_block_size"), "vllm.v1.spec_decode.eagle"),
    "draft_positions": "vllm.config",
}
SOURCES = sorted((Path(__file__).parents[3] / "specfix" / "shim" / "specfix_shim").glob("*.py"))


@dataclass(frozen=True)
class Bench:
    """A folder that holds a shim and a vLLM."""

    folder: Path

    def write(self, modules: dict[str, str], *patches: str) -> None:
        write_vllm(self.folder, modules)
        manifest = {"schema": SCHEMA, "patches": {patch: SETTINGS.get(patch, {}) for patch in patches}}
        for path, content in shim_files(manifest).items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def run(self, script: str = "") -> list[str]:
        """Run a script after activation; give the lines that the shim logged, in order."""
        lines = self.python(f"""
            import json, logging, sys
            logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
            import specfix_shim
            specfix_shim.activate()
            {textwrap.indent(textwrap.dedent(script), " " * 12).strip()}
        """).stderr.splitlines()
        prefix = "vllm.plugins.specfix_shim specfix shim: "
        assert all(line.startswith(prefix) for line in lines), lines
        return [line.removeprefix(prefix) for line in lines]

    def python(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", *(arguments or ("-c", textwrap.dedent(script)))]
        # a folder of its own, since the current one is on the path as well; a fixed order of sets
        env = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONHASHSEED": "1"}
        env.pop("VLLM_PLUGINS", None)
        ran = subprocess.run(command, capture_output=True, text=True, env=env, cwd=self.folder, check=False)
        assert ran.returncode == 0 or arguments, ran.stderr
        return ran


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# What each patch does


def test_sampling_is_done_in_pytorch_wherever_it_was_imported(bench: Bench) -> None:
    bench.write(EXPECTED, "cpu_sampling")
    assert bench.run("""
        import vllm.v1.worker.cpu_model_runner as runner
        from specfix_shim import torch_kernels
        from vllm.v1.sample import rejection_sampler
        assert runner.expand_batch_to_tokens is torch_kernels.expand_batch_to_tokens
        assert rejection_sampler.expand_batch_to_tokens is torch_kernels.expand_batch_to_tokens
    """) == ["cpu_sampling: done in PyTorch: expand_batch_to_tokens"]


def test_triton_without_a_driver_is_not_called(bench: Bench) -> None:
    backends = "class Backend:\n    driver = None\nbackends = {'cuda': Backend}\n"
    bench.write(EXPECTED | {"triton_utils/__init__": "HAS_TRITON = True"}, "cpu_sampling")
    (bench.folder / "triton").mkdir()
    (bench.folder / "triton" / "__init__.py").touch()
    (bench.folder / "triton" / "backends.py").write_text(backends)
    assert bench.run("""
        import vllm.v1.worker.cpu_model_runner as runner
        assert runner.apply_top_k_top_p("logits", 20, None) == ("in PyTorch", "logits", 20, None)
        assert runner.apply_top_k_top_p("logits", None, None, has_topp_only_rows=True) == "logits"
    """) == ["cpu_sampling: done in PyTorch: expand_batch_to_tokens, apply_top_k_top_p"]


def test_a_triton_that_works_is_left_alone(bench: Bench) -> None:
    active = "class Driver:\n    is_active = staticmethod(lambda: True)\nclass Backend:\n    driver = Driver\n"
    bench.write(EXPECTED | {"triton_utils/__init__": "HAS_TRITON = True"}, "cpu_sampling")
    (bench.folder / "triton").mkdir()
    (bench.folder / "triton" / "__init__.py").touch()
    (bench.folder / "triton" / "backends.py").write_text(active + "backends = {'cpu': Backend}\n")
    assert bench.run("import vllm.v1.worker.cpu_model_runner") == [
        "cpu_sampling: did nothing: Triton works here, so that vLLM's own kernels run"
    ]


def test_aux_layers_reach_the_model_inside_its_wrapper(bench: Bench) -> None:
    bench.write(EXPECTED, "cpu_aux_setup")
    assert bench.run("""
        from vllm.v1.worker.cpu_model_runner import CPUModelRunner
        runner = CPUModelRunner()
        assert runner.load_model() == "loaded"
        assert runner.model.wrapped.layers == (2, 4, 5)
        assert not hasattr(runner.model, "layers")
    """) == [
        "cpu_aux_setup: the target's auxiliary layers are set after loading",
        "cpu_aux_setup: auxiliary layers (2, 4, 5) set on Target",
    ]


def test_a_target_without_aux_layers_loads_all_the_same(bench: Bench) -> None:
    bench.write(EXPECTED, "cpu_aux_setup")
    lines = bench.run("""
        from vllm.v1.worker import cpu_model_runner as module
        module.Target = type("Target", (), {})
        assert module.CPUModelRunner().load_model() == "loaded"
    """)
    assert lines[1].startswith("cpu_aux_setup: the auxiliary layers could not be set: ")


def test_stand_ins_take_what_they_are_called_with(bench: Bench) -> None:
    bench.write(EXPECTED, "cpu_stand_ins")
    assert bench.run("""
        import vllm.v1.worker.cpu_model_runner
        from specfix_shim import torch_kernels
        from vllm.utils import cpu_triton_utils
        kernel = torch_kernels.rejection_greedy_sample_kernel
        assert cpu_triton_utils.rejection_greedy_sample_kernel[(1,)] is kernel
        assert cpu_triton_utils._rejection_greedy_sample_kernel_impl is kernel
        assert not hasattr(cpu_triton_utils, "rejection_random_sample_kernel")
    """) == [
        "cpu_stand_ins: done in PyTorch: rejection_greedy_sample_kernel "
        "(takes uniform_probs, synthetic_conditional_rates, SYNTHETIC_MODE)"
    ]


def test_an_argument_that_nobody_knows_is_not_ignored(bench: Bench) -> None:
    new = {"v1/sample/rejection_sampler": SAMPLER.replace("SYNTHETIC_MODE", "SYNTHETIC_MODE, NEW_MODE")}
    bench.write(EXPECTED | new, "cpu_stand_ins")
    (line,) = bench.run("""
        import vllm.v1.worker.cpu_model_runner
        from vllm.utils import cpu_triton_utils
        assert not hasattr(cpu_triton_utils, "rejection_greedy_sample_kernel")
    """)
    assert "did nothing" in line and "NEW_MODE" in line


def test_draft_layers_are_in_order_in_every_process(bench: Bench) -> None:
    bench.write(EXPECTED, "sorted_draft_layers")
    script = """
        from types import SimpleNamespace
        from vllm.v1.spec_decode.eagle import EagleProposer
        config = SimpleNamespace(cache_config=SimpleNamespace(block_size=16))
        names = ["layers.%d" % n for n in range(20)]
        assert EagleProposer(config, names).first() {} "layers.0"
    """
    assert bench.run(script.format("==")) == ["sorted_draft_layers: in sorted order: EagleProposer.attn_layer_names"]
    # as released the same assertion holds for one seed in twenty, and not for this one
    bench.write(EXPECTED, "draft_positions")
    assert bench.run(script.format("!=")) == []


def test_a_set_of_names_stays_a_set(bench: Bench) -> None:
    bench.write(EXPECTED, "sorted_draft_layers")
    bench.run("""
        from specfix_shim.sorted_draft_layers import InOrder, SortedSet
        class Proposer:
            names = InOrder("names")
        proposer = Proposer()
        assert not hasattr(proposer, "names")
        proposer.names = {"b", "c", "a"}
        assert list(proposer.names) == ["a", "b", "c"] == [name for name in proposer.names]
        assert next(iter(proposer.names)) == "a" and "b" in proposer.names and len(proposer.names) == 3
        assert proposer.names & {"c", "d"} == {"c"} and proposer.names == {"a", "b", "c"}
        proposer.names = None
        assert proposer.names is None
    """)


def test_slots_are_computed_in_the_unit_of_the_block_table(bench: Bench) -> None:
    bench.write(EXPECTED, "slot_block_size")
    script = """
        from types import SimpleNamespace as N
        from vllm.v1.spec_decode.eagle import EagleProposer
        from vllm.v1.worker.block_table import BlockTable
        proposer = EagleProposer(N(cache_config=N(block_size=64)), ["draft.0"])
        proposer.runner = {}
        groups = N(kv_cache_groups=[N(layer_names=["target.0"]), N(layer_names=["draft.0"])])
        assert proposer.validate_same_kv_cache_group(groups) == "validated"
        assert proposer.block_size == {}
    """
    tables = "N(input_batch=N(block_table=[BlockTable(64, 64), BlockTable(64, 16)]))"
    armed = "slot_block_size: EagleProposer will count in the unit of its block table"
    assert bench.run(script.format(tables, 16)) == [
        armed,
        "slot_block_size: the draft's slots are computed with blocks of 16, no longer of 64",
    ]
    lines = bench.run(script.format("None", 64))  # a runner of another kind
    assert lines[0] == armed and lines[1].startswith("slot_block_size: left as it was: ")


def test_positions_are_raised_before_the_length_is_derived(bench: Bench) -> None:
    bench.write(EXPECTED, "draft_positions")
    assert bench.run(f"""
        from vllm.config import ModelConfig, SpeculativeConfig
        def released(config):
            config.seen = config.max_position_embeddings
            return config
        draft = ModelConfig("{DRAFT}", "draft", released)
        assert (draft.hf_config.seen, draft.hf_config.max_position_embeddings, draft.max_model_len) == (64, 1024, 1024)
        assert draft.hf_overrides is released
        cached = ModelConfig("/cache/models--org--draft/snapshots/abc", "draft")
        assert cached.max_model_len == 1024 and cached.hf_overrides == {{}}
        # the target, and other drafts, are not the manifest's business
        target, other = ModelConfig("{DRAFT}"), ModelConfig("org/other", "draft")
        assert target.max_model_len == other.max_model_len == 64
        # a compiled draft of another size is another one
        hashes = {{SpeculativeConfig(each).compute_hash() for each in (draft, other, None)}}
        assert len(hashes) == 2 and "same for every table" in hashes
        draft.hf_config.max_position_embeddings = 2048
        assert SpeculativeConfig(draft).compute_hash() not in hashes
    """) == [
        f"draft_positions: max_position_embeddings of {DRAFT} raised from 64 to 1024 (its length is 1024)",
    ]


@pytest.mark.parametrize(
    ("values", "raised"),
    [
        ({}, True),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, True),
        ({"rope_parameters": {"rope_type": "llama3"}}, True),
        ({"rope_parameters": {"full": {"rope_type": "default"}, "sliding": {"rope_type": "default"}}}, True),
        ({"rope_scaling": {"rope_type": "default", "mrope_section": [8, 12, 12]}}, True),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, False),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, False),
        ({"rope_parameters": {"full": {"rope_type": "longrope"}, "sliding": {"rope_type": "default"}}}, False),
        ({"rope_theta": None}, False),  # positions of another kind: the weights have their number of rows
    ],
)
def test_only_tables_that_are_merely_sized_by_it_are_enlarged(
    bench: Bench, values: dict[str, Any], raised: bool
) -> None:
    bench.write(EXPECTED, "draft_positions")
    (line,) = bench.run(f"""
        from vllm.config import ModelConfig
        draft = ModelConfig("{DRAFT}", "draft", values={values!r})
        assert draft.hf_config.max_position_embeddings == {1024 if raised else 64}
    """)
    assert ("raised from 64 to 1024" if raised else "left as it was") in line


def test_a_table_that_is_long_enough_is_not_touched(bench: Bench) -> None:
    bench.write(EXPECTED, "draft_positions")
    assert (
        bench.run(f"""
            from vllm.config import ModelConfig
            assert ModelConfig("{DRAFT}", "draft", values={{"max_position_embeddings": 4096}}).max_model_len == 4096
        """)
        == []
    )


# Where a patch must do nothing, and say so

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


@pytest.mark.parametrize("patch", SETTINGS)
def test_an_error_in_a_patch_is_a_line(bench: Bench, patch: str) -> None:
    bench.write(EXPECTED, patch)
    assert bench.run(f"""
        import specfix_shim.{patch} as patch
        patch.apply = lambda module, settings: 1 / 0
        import {MODULE[patch]}
    """) == [f"{patch}: did nothing: ZeroDivisionError: division by zero"]


def test_an_error_of_vllms_own_stays_its_own(bench: Bench) -> None:
    bench.write(EXPECTED | {"config/__init__": "raise OSError('own')"}, "draft_positions")
    assert (
        bench.run("""
            try:
                import vllm.config
            except OSError as error:
                assert str(error) == "own"
            else:
                raise AssertionError
        """)
        == []
    )


def test_overrides_that_cannot_be_composed_are_left(bench: Bench) -> None:
    bench.write(EXPECTED, "draft_positions")
    (line,) = bench.run(f"""
        from vllm.config import ModelConfig
        assert ModelConfig("{DRAFT}", "draft", {{"model_type": "medusa"}}).max_model_len == 64
    """)
    assert "left as it was" in line


# The frame


@pytest.mark.parametrize("late", [False, True])
def test_all_at_once_and_again(bench: Bench, late: bool) -> None:
    """Every patch acts once, whether vLLM was imported before activation or after, and however often it is called."""
    bench.write(EXPECTED, *SETTINGS)
    imports = "\n".join(f"import {module}" for module in dict.fromkeys(MODULE.values()))
    script = f"{imports if late else ''}\nspecfix_shim.activate()\n{imports}\nspecfix_shim.activate()"
    lines = bench.run(script)
    assert sorted(line.partition(":")[0] for line in lines) == sorted(set(SETTINGS) - {"draft_positions"})
    assert not [line for line in lines if "did nothing" in line]


def test_lines_wait_for_the_engine_to_set_logging_up(bench: Bench) -> None:
    bench.write(EXPECTED, "cpu_aux_setup")
    ran = bench.python("""
        import logging, specfix_shim
        specfix_shim.activate()
        from vllm.v1.worker.cpu_model_runner import CPUModelRunner
        logging.basicConfig(level=logging.INFO, format="%(message)s")
        CPUModelRunner().load_model()
    """)
    assert [line.split(": ")[2] for line in ran.stderr.splitlines()] == [
        "the target's auxiliary layers are set after loading",
        "auxiliary layers (2, 4, 5) set on Target",
    ]


def test_only_what_the_manifest_names(bench: Bench) -> None:
    bench.write(EXPECTED, "no_such_patch")
    lines = bench.run("import vllm.config, vllm.v1.spec_decode.eagle, vllm.v1.worker.cpu_model_runner")
    assert lines == ["no_such_patch: did nothing: this shim has no such patch"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("manifest.json", None),
        ("manifest.sha256", None),
        ("manifest.json", b"{}"),
        ("manifest.json", json.dumps({"schema": SCHEMA, "patches": {}}).encode()),  # good, but not this shim's
        ("manifest.sha256", b"\xff"),
    ],
)
def test_without_its_manifest_the_shim_does_nothing(bench: Bench, file: str, content: bytes | None) -> None:
    bench.write(EXPECTED, *SETTINGS)
    path = bench.folder / "specfix_shim" / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    (line,) = bench.run("import vllm.config, vllm.v1.spec_decode.eagle, vllm.v1.worker.cpu_model_runner")
    assert line.startswith("does nothing: manifest ")


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"schema": "specfix/shim-v2"}', b'{"schema": "%s"}'])
def test_a_manifest_of_another_form(bench: Bench, text: bytes) -> None:
    import hashlib

    bench.write(EXPECTED, "draft_positions")
    text = text.replace(b"%s", SCHEMA.encode())
    folder = bench.folder / "specfix_shim"
    (folder / "manifest.json").write_bytes(text)
    (folder / "manifest.sha256").write_text(hashlib.sha256(text).hexdigest())
    (line,) = bench.run("import vllm.config")
    assert line.startswith("does nothing: manifest ")


def test_a_shim_that_is_not_whole(bench: Bench) -> None:
    bench.write(EXPECTED, *SETTINGS)
    (bench.folder / "specfix_shim" / "core.py").write_text("raise OSError('gone')")
    (line,) = bench.run("import vllm.config")
    assert line == "not active: OSError('gone')"


def test_settings_that_make_no_sense(bench: Bench) -> None:
    bench.write(EXPECTED, "draft_positions")
    manifest = {"schema": SCHEMA, "patches": {"draft_positions": {"draft": DRAFT}}}
    for path, content in shim_files(manifest).items():
        (bench.folder / path).write_bytes(content)
    (line,) = bench.run("import vllm.config")
    assert line == "draft_positions: did nothing: the manifest lacks the draft or its max_position_embeddings"


def test_nothing_of_specfix_and_nothing_heavy_is_imported(bench: Bench) -> None:
    bench.write(EXPECTED, *SETTINGS)
    bench.run("""
        loaded = {name.partition(".")[0] for name in sys.modules}
        assert not loaded & {"specfix", "specfix_rules", "vllm", "torch", "triton", "numpy"}, loaded
    """)


def test_activation_takes_milliseconds(bench: Bench) -> None:
    """With the standard library modules that a process of vLLM has long since loaded, and its configs imported."""
    bench.write(EXPECTED, *SETTINGS)
    script = """
        import ast, functools, hashlib, importlib.metadata, inspect, json, logging, pathlib, textwrap, time, typing
        import vllm.config
        start = time.perf_counter()
        import specfix_shim
        specfix_shim.activate()
        print((time.perf_counter() - start) * 1000)
    """
    assert min(float(bench.python(script).stdout) for _ in range(5)) < 100


def test_vllm_finds_the_plugin(bench: Bench) -> None:
    bench.write(EXPECTED, *SETTINGS)
    bench.run("""
        from importlib.metadata import entry_points
        points = list(entry_points(group="vllm.general_plugins"))
        (point,) = [point for point in points if point.name == "specfix_shim"]
        assert point.load() is specfix_shim.activate and point.dist.version == "1"
    """)


def test_status(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write(EXPECTED, "draft_positions", "cpu_aux_setup")
    told = bench.python("", "-m", "specfix_shim", "status")
    assert told.returncode == 0
    assert "plugin found by its entry point" in told.stdout
    assert "draft_positions: waits for vllm.config" in told.stdout
    told = bench.python("", "-m", "specfix_shim", "status", "--import")
    assert told.returncode == 0, told.stderr
    assert "cpu_aux_setup: the target's auxiliary layers are set after loading" in told.stdout
    assert "draft_positions: nothing to tell yet" in told.stdout
    assert bench.python("", "-m", "specfix_shim").returncode == 2
    (bench.folder / "specfix_shim" / "manifest.json").unlink()
    told = bench.python("", "-m", "specfix_shim", "status")
    assert told.returncode == 1 and told.stdout.startswith("does nothing: manifest cannot be read")


@pytest.mark.parametrize("manifest", [{}, {"schema": SCHEMA}, {"schema": "specfix/shim-v0", "patches": {}}])
def test_a_manifest_that_cannot_be_written(manifest: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a manifest"):
        shim_files(manifest)


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_the_shim_stands_alone_and_runs_on_python_3_9(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"), feature_version=(3, 9))
    assert isinstance(tree.body[1], ast.ImportFrom) and tree.body[1].module == "__future__", "annotations are text"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(alias.name.partition(".")[0] in sys.stdlib_module_names for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            assert (node.module or "").partition(".")[0] in sys.stdlib_module_names
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "zip":
            assert not node.keywords, "strict= came with 3.10"
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in {"isinstance", "issubclass"}:
            assert not isinstance(node.args[1], ast.BinOp), "X | Y came with 3.10"
