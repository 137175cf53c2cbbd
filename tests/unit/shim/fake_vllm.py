"""Packages called vllm that look as the patches expect, and some that do not. Written by us; no line is vLLM's."""

from __future__ import annotations

from pathlib import Path

CONFIG = """
    import dataclasses


    class RopeConfig:
        def __init__(self, **values):
            self.__dict__.update({"max_position_embeddings": 64, "rope_theta": 10000.0} | values)


    @dataclasses.dataclass
    class ModelConfig:
        model: str
        runner: str = "generate"
        hf_overrides: object = dataclasses.field(default_factory=dict)
        values: dict = dataclasses.field(default_factory=dict)
        max_model_len: object = None

        def __post_init__(self):
            config = RopeConfig(**self.values)
            if callable(self.hf_overrides):
                config = self.hf_overrides(config)
            self.hf_config = config
            self.max_model_len = self.max_model_len or config.max_position_embeddings


    @dataclasses.dataclass
    class SpeculativeConfig:
        draft_model_config: object

        def compute_hash(self):
            return "same for every table"
"""
SAMPLER = """
    def expand_batch_to_tokens(x, cu_num_tokens, num_tokens, replace_from=0, replace_to=0):
        return expand_kernel[(1,)](x)


    def rejection_greedy_sample_kernel(output_token_ids_ptr, cu_num_draft_tokens_ptr, draft_token_ids_ptr,
                                       target_argmax_ptr, bonus_token_ids_ptr, is_greedy_ptr, max_spec_len,
                                       uniform_probs_ptr, synthetic_conditional_rates_ptr, SYNTHETIC_MODE):
        pass


    def rejection_random_sample_kernel(output_token_ids_ptr):
        pass


    def sample_recovered_tokens_kernel(output_token_ids_ptr):
        pass
"""
STAND_INS = """
    def _expand_kernel_impl(output, input_val, cu_num_tokens, replace_from, replace_to):
        fill(_ensure_int64(output), input_val)


    def _rejection_greedy_sample_kernel_impl(output_token_ids, cu_num_draft_tokens, draft_token_ids, target_argmax,
                                             bonus_token_ids, is_greedy, max_spec_len):
        pass


    def _rejection_random_sample_kernel_impl(output_token_ids):
        pass


    def _sample_recovered_tokens_kernel_impl(output_token_ids):
        pass
"""
TOP_K_TOP_P = """
    from vllm.triton_utils import HAS_TRITON


    def apply_top_k_top_p(logits, k, p):
        raise NotImplementedError("a Triton kernel without a driver")


    def apply_top_k_top_p_pytorch(logits, k, p):
        return ("in PyTorch", logits, k, p)
"""
CPU_RUNNER = """
    import vllm.utils.cpu_triton_utils
    from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p
    from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens


    class Target:
        layers = None

        def get_eagle3_default_aux_hidden_state_layers(self):
            return (2, 4, 5)

        def set_aux_hidden_state_layers(self, layers):
            self.layers = layers


    class Wrapper:
        def __init__(self, model):
            self.wrapped = model

        def unwrap(self):
            return self.wrapped


    class CPUModelRunner:
        use_aux_hidden_state_outputs = True

        def _get_eagle3_aux_layers_from_config(self):
            return None

        def load_model(self):
            self.model = Wrapper(Target())
            return "loaded"
"""
PROPOSER = """
    class EagleProposer:
        def __init__(self, vllm_config, layers=()):
            self.block_size = vllm_config.cache_config.block_size
            self.load_model(set(layers))

        def load_model(self, after):
            names = after - set()
            self.attn_layer_names = list(names)

        def first(self):
            return self.attn_layer_names[0]

        def validate_same_kv_cache_group(self, kv_cache_config):
            return "validated"
"""
BLOCK_TABLE = """
    class BlockTable:
        def __init__(self, block_size, kernel_block_size):
            self.block_size = kernel_block_size
"""
TRITON_ABSENT = "HAS_TRITON = False"

EXPECTED = {
    "triton_utils/__init__": TRITON_ABSENT,
    "config/__init__": CONFIG,
    "utils/cpu_triton_utils": STAND_INS,
    "v1/sample/rejection_sampler": SAMPLER,
    "v1/sample/ops/topk_topp_sampler": TOP_K_TOP_P,
    "v1/spec_decode/eagle": PROPOSER,
    "v1/worker/block_table": BLOCK_TABLE,
    "v1/worker/cpu_model_runner": CPU_RUNNER,
}
EXPECTED_ALL = EXPECTED | {"triton_utils/__init__": "HAS_TRITON = True"}
"""With a Triton that has no driver, so that each patch does all that it can."""
EMPTY = dict.fromkeys(EXPECTED, "")


def write_vllm(folder: Path, modules: dict[str, str]) -> None:
    """Write the package ``vllm``, and a ``torch`` with what the replaced kernels take from it."""
    (folder / "torch.py").write_text("long = None\ndef diff(*_, **__): pass\n")
    for name, source in modules.items():
        path = folder / "vllm" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line[4:] for line in source.splitlines()) + "\n" if "\n" in source else source)
    for parent in {path.parent for path in (folder / "vllm").rglob("*.py")} | {folder / "vllm"}:
        for each in (parent, *parent.parents):
            if each == folder:
                break
            (each / "__init__.py").touch()
