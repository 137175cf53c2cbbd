"""What each patch of the shim does, in processes of their own, on vLLMs that we wrote."""

from __future__ import annotations

from typing import Any

import pytest

from .bench import Bench
from .fake_vllm import EXPECTED, SAMPLER
from .using_vllm import DRAFT


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
    assert lines[1].startswith("cpu_aux_setup: left as it was: ")


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


def test_slots_are_computed_in_the_unit_of_the_metadata_builders(bench: Bench) -> None:
    """Of a proposer that takes the size from the specs of its groups."""
    proposer = """
    class EagleProposer:
        def initialize_attn_backend(self, kv_cache_config, kernel_block_sizes=None):
            self.draft_attn_groups = kv_cache_config
            return "initialized"

        def unit(self):
            block_size = self.draft_attn_groups[0].kv_cache_spec.block_size
            return block_size
"""
    bench.write(EXPECTED | {"v1/spec_decode/eagle": proposer}, "slot_block_size")
    script = """
        from types import SimpleNamespace as N
        from vllm.v1.spec_decode.eagle import EagleProposer
        proposer = EagleProposer()
        kernel = N(kv_cache_spec=N(block_size=16))
        groups = [N(kv_cache_spec=N(block_size=64), get_metadata_builder=lambda: each) for each in (kernel, {})]
        assert proposer.initialize_attn_backend(groups, kernel_block_sizes=[16]) == "initialized"
        assert [proposer.unit(), groups[1].kv_cache_spec.block_size] == {}
    """
    armed = "slot_block_size: EagleProposer will count in the unit of its metadata builder"
    assert bench.run(script.replace("{}", "kernel", 1).replace("{}", "[16, 16]")) == [
        armed,
        "slot_block_size: the draft's slots are computed with blocks of 16, no longer of 64",
    ]
    lines = bench.run(script.replace("{}", "None", 1).replace("{}", "[64, 64]"))  # all of them, or none
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
