"""What is mutated: the fields that rules read, with the values that real models have there.

``budget`` is how many mutations of a field are drawn. Where nearly every other value is refused at start it is small,
so that the engines come to the later moments often enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ABSURD: tuple[Any, ...] = (0, -1, 10**9, "many")


@dataclass(frozen=True)
class Field:
    """One field: on which side it stands, its path, and the values it takes."""

    side: str
    """target, draft, serve, speculative or generation."""
    path: tuple[str, ...]
    budget: int
    others: tuple[Any, ...] = ()
    """What stands there in other models or deployments."""
    absurd: tuple[Any, ...] = ABSURD

    def __str__(self) -> str:
        return f"{self.side}:{'.'.join(self.path)}"


def fields(side: str, table: Mapping[str, tuple[Any, ...]]) -> tuple[Field, ...]:
    return tuple(Field(side, tuple(path.split(".")), *rest) for path, rest in table.items())


FEW: tuple[Any, ...] = (0, -1, 10**9)  # for what is typed before it reaches the check or the engine
NONE: tuple[Any, ...] = ()

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256}
YARN_OLD = {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 128}
LINEAR = {"rope_type": "linear", "factor": 2.0}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0}
MROPE = {"type": "mrope", "mrope_section": [4, 6, 6]}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}
COMPRESSED = {"quant_method": "compressed-tensors", "config_groups": {}, "format": "float-quantized", "ignore": []}
UNKNOWN_QUANT = {"quant_method": "homegrown"}

TARGET = fields(
    "target",
    {
        "architectures": (
            3,
            (
                ["Qwen2ForCausalLM"],
                ["MistralForCausalLM"],
                ["GPT2LMHeadModel"],
                ["MixtralForCausalLM"],
                ["PhiForCausalLM"],
            ),
            ([], ["NoSuchForCausalLM"], "LlamaForCausalLM"),
        ),
        "model_type": (2, ("qwen2", "mistral", "llama4", "deepseek_v3", "kimi_k2"), ("", "no-such", 7)),
        "num_hidden_layers": (2, (6, 4, 32, 36)),
        "hidden_size": (1, (4096, 64)),
        "intermediate_size": (1, (14336, 64)),
        "num_attention_heads": (1, (32, 2)),
        "num_key_value_heads": (1, (8, 1)),
        "head_dim": (1, (128, 16)),
        "vocab_size": (2, (128256, 151936, 500)),
        "max_position_embeddings": (5, (131072, 40960, 2048, 512, 128)),
        "rope_theta": (4, (500000.0, 1000000, 10000000)),
        "rope_scaling": (4, (LLAMA3, YARN, YARN_OLD, LINEAR, DYNAMIC, MROPE), ([], "yarn", {}, {"factor": 2.0})),
        "rope_scaling.rope_type": (1, ("default", "linear", "dynamic", "longrope"), ("spiral", 7)),
        "rope_scaling.factor": (2, (8.0, 1.0, 40)),
        "rope_scaling.original_max_position_embeddings": (1, (8192, 4096)),
        "rope_parameters": (2, ({"rope_type": "default", "rope_theta": 8000000}, {**YARN, "rope_theta": 10000.0})),
        "sliding_window": (2, (4096, 131072, 128, 32)),
        "use_sliding_window": (1, (True, False)),
        "layer_types": (2, (["full_attention"] * 8, ["sliding_attention", "full_attention"] * 4, ["full_attention"])),
        "tie_word_embeddings": (2, (True,)),
        "torch_dtype": (3, ("float16", "float32")),
        "dtype": (1, ("float16", "float32", "bfloat16")),
        "eos_token_id": (3, (151645, 128009, [1, 2])),
        "bos_token_id": (1, (151643,)),
        "pad_token_id": (1, (0, 3, 151643)),
        "attention_bias": (1, (True,)),
        "mlp_bias": (1, (True,)),
        "rms_norm_eps": (1, (1e-6, 1e-2)),
        "hidden_act": (1, ("gelu", "relu2")),
        "quantization_config": (2, (FP8, AWQ, GPTQ, COMPRESSED, UNKNOWN_QUANT), ({}, "fp8")),
        "num_nextn_predict_layers": (1, (1, 3)),
        "partial_rotary_factor": (1, (0.5, 0.25)),
        "n_positions": (1, (64, 2048)),
        "max_seq_len": (1, (64, 2048)),
        "seq_length": (1, (64, 8192)),
        "model_max_length": (1, (64, 8192)),
        "max_sequence_length": (1, (64, 8192)),
        "num_experts": (1, (0, 128)),
        "auto_map": (1, ({"AutoConfig": "configuration_x.XConfig"},)),
        "text_config": (1, ({}, {"hidden_size": 128})),
        "vision_config": (1, ({"hidden_size": 64},)),
        "n_routed_experts": (1, (256,)),
        "num_local_experts": (1, (8, 128)),
        "moe_num_experts": (1, (64,)),
        "kv_lora_rank": (1, (512,)),
        "mtp_num_hidden_layers": (1, (1,)),
        "num_mtp_modules": (1, (3,)),
        "num_mtp_layers": (1, (1,)),
        "mtp_config": (1, ({"num_nextn_predict_layers": 1},)),
        "max_seq_length": (1, (64, 8192)),
        "seq_len": (1, (64, 8192)),
        "max_target_positions": (1, (64, 448)),
        "rotary_emb_base": (1, (1000000,)),
        "rotary_pct": (1, (0.25,)),
        "rope_local_base_freq": (1, (10000.0,)),
        "attention_head_dim": (1, (64,)),
        "block_configs": (1, ([],)),
        "canvas_length": (1, (256,)),
        "engram_layer_ids": (1, ([1], [])),
        "ple_layer_ids": (1, ([1], [])),
        "compression_config": (1, (COMPRESSED,)),
    },
)
DRAFT = fields(
    "draft",
    {
        "architectures": (
            5,
            (
                ["Eagle3LlamaForCausalLM"],
                ["LlamaForCausalLM"],
                ["LlamaForCausalLMEagle"],
                ["EagleLlamaForCausalLM"],
                ["DFlashDraftModel"],
                ["Qwen3ForCausalLMEagle3"],
                ["EagleQwen2ForCausalLM"],
                ["MedusaModel"],
            ),
            ([], ["NoSuchForCausalLM"], "LlamaForCausalLM"),
        ),
        "model_type": (3, ("qwen3", "qwen2", "mistral", "deepseek_v3", "eagle", "medusa"), ("", "no-such", 7)),
        "num_hidden_layers": (2, (2, 5, 40)),
        "hidden_size": (2, (4096, 64)),
        "intermediate_size": (1, (14336, 64)),
        "num_attention_heads": (1, (32, 2, 8)),
        "num_key_value_heads": (1, (8, 1, 2)),
        "head_dim": (1, (128, 64, 16)),
        "vocab_size": (3, (128256, 151936, 500, 32000)),
        "draft_vocab_size": (4, (32000, 256, 128)),
        "max_position_embeddings": (16, (2048, 4096, 40960, 262144, 512, 256, 128, 64, 32)),
        "rope_theta": (6, (500000.0, 1000000, 10000000, 100)),
        "rope_scaling": (6, (LLAMA3, YARN, YARN_OLD, LINEAR, DYNAMIC, MROPE), ([], "yarn", {}, {"factor": 2.0})),
        "rope_scaling.rope_type": (2, ("default", "linear", "dynamic", "longrope"), ("spiral", 7)),
        "rope_scaling.factor": (3, (8.0, 1.0, 0.5, 40)),
        "rope_scaling.original_max_position_embeddings": (2, (8192, 4096, 64)),
        "rope_parameters": (
            3,
            (
                {"rope_type": "default", "rope_theta": 8000000},
                {**YARN, "rope_theta": 10000.0},
                {**YARN, "factor": 1.0, "rope_theta": 10000.0},
            ),
        ),
        "partial_rotary_factor": (1, (0.5, 0.25)),
        "sliding_window": (3, (4096, 2048, 64, 16)),
        "use_sliding_window": (1, (True, False)),
        "layer_types": (2, (["full_attention"], ["sliding_attention"], ["full_attention", "sliding_attention"])),
        "tie_word_embeddings": (3, (True,)),
        "torch_dtype": (4, ("float16", "float32")),
        "dtype": (3, ("float16", "float32", "bfloat16")),
        "eos_token_id": (3, (151645, 128009, [1, 2])),
        "bos_token_id": (1, (151643,)),
        "pad_token_id": (1, (0, 3, 151643)),
        "attention_bias": (2, (True,)),
        "mlp_bias": (1, (True,)),
        "rms_norm_eps": (2, (1e-6, 1e-2)),
        "hidden_act": (1, ("gelu", "relu2")),
        "quantization_config": (2, (FP8, AWQ, GPTQ, COMPRESSED, UNKNOWN_QUANT), ({}, "fp8")),
        "eagle_aux_hidden_state_layer_ids": (
            11,
            (
                [2, 4, 5],
                [1, 29, 57],
                [1, 3],
                [1, 3, 5, 7],
                [2, 2, 5],
                [0, 4, 8],
                [-1, 4, 6],
                [2, 4, 60],
                [5, 4, 2],
                [2, 4, 9],
            ),
            ([], [1e9, 2, 3], 3, "2,4,5"),
        ),
        "eagle_config": (
            3,
            (
                {"eagle_aux_hidden_state_layer_ids": [1, 3, 6]},
                {"eagle_aux_hidden_state_layer_ids": [1, 3]},
                {"use_aux_hidden_state": False},
                {"use_aux_hidden_state": True},
            ),
            ({}, [], "yes"),
        ),
        "eagle_config.eagle_aux_hidden_state_layer_ids": (2, ([1, 3, 6], [1, 3, 5, 9], [1, 3, 3, 5]), ([], 4)),
        "eagle_config.use_aux_hidden_state": (1, (False,), (NONE)),
        "num_aux_hidden_states": (2, (3, 4, 2, 1)),
        "target_hidden_size": (3, (128, 256, 4096)),
        "norm_before_residual": (2, (False,), (7,)),
        "norm_before_fc": (1, (True, False), (7,)),
        "fc_norm": (1, (True, False), (7,)),
        "norm_output": (1, (True, False), (7,)),
        "target_layer_ids": (1, ([1, 3, 5], [1, 3])),
        "aux_hidden_state_layer_ids": (1, ([1, 3, 5], [1, 3])),
        "dflash_config": (1, ({"target_layer_ids": [1, 3, 5]}, {"target_layer_ids": [1, 3], "mask_token_id": 3})),
        "logit_scale": (1, (0.5, 2.0)),
        "num_nextn_predict_layers": (1, (1, 3)),
        "block_size": (1, (8, 16)),
        "n_positions": (1, (64, 2048)),
        "max_seq_len": (1, (64, 2048)),
        "seq_length": (1, (64, 8192)),
        "model_max_length": (1, (64, 8192)),
        "max_sequence_length": (1, (64, 8192)),
        "max_seq_length": (1, (64, 2048)),
        "seq_len": (1, (64, 2048)),
        "max_target_positions": (1, (64, 448)),
        "kv_lora_rank": (1, (512,)),
        "markov_rank": (1, (64,)),
        "medusa_num_heads": (1, (3, 5)),
        "n_predict": (1, (1, 3)),
        "dspark_block_size": (1, (7,)),
        "dspark_target_layer_ids": (1, ([1, 3, 5], [1, 3])),
        "num_aux_layers": (1, (3, 5)),
        "num_mtp_layers": (1, (1,)),
        "num_mtp_modules": (1, (1,)),
        "mtp_num_hidden_layers": (1, (1,)),
        "num_target_layers": (1, (8, 36)),
        "rotary_emb_fraction": (1, (0.5,)),
        "swa_rope_theta": (1, (10000.0,)),
        "eagle_config.layer_ids": (1, ([1, 3], [1, 3, 5])),
        "bias": (1, (True, False)),
        "eagle_fc_bias": (1, (True,)),
        "num_experts": (1, (0, 128)),
        "auto_map": (1, ({"AutoModel": "dflash.DFlashDraftModel"},)),
        "text_config": (1, ({}, {"hidden_size": 128})),
        "speculators_model_type": (1, ("eagle", "dflash", "mtp"), ("no-such", 7)),
        "speculators_config": (1, ({},)),
        "speculators_config.proposal_methods": (1, ([], [{"proposal_type": "greedy", "speculative_tokens": 5}])),
        "speculators_config.verifier": (1, ({"name_or_path": None}, {})),
        "transformer_layer_config.max_position_embeddings": (3, (2048, 512, 128, 64)),
        "transformer_layer_config.model_type": (1, ("qwen3", "mistral")),
        "transformer_layer_config.num_hidden_layers": (1, (2,)),
        "transformer_layer_config.rope_theta": (1, (1000000,)),
        "transformer_layer_config.vocab_size": (1, (128256,)),
        "transformer_layer_config.hidden_size": (1, (4096,)),
        "transformer_layer_config": (1, ({},)),
    },
)
SERVE = fields(
    "serve",
    {
        "max_model_len": (7, (64, 128, 256, 512, 2048, 4096), FEW),
        "max_num_seqs": (10, (1, 2, 16, 64, 256, 1024), FEW),
        "max_num_batched_tokens": (11, (2, 8, 16, 64, 256, 2048, 8192), FEW),
        "block_size": (6, (8, 16, 32, 48, 64, 128, 256), FEW),
        "dtype": (3, ("auto", "float16", "float32", "half"), ("int8", "many")),
        "kv_cache_dtype": (4, ("auto", "fp8", "fp8_e5m2", "bfloat16"), ("int3",)),
        "enable_prefix_caching": (4, (True,), NONE),
        "enable_chunked_prefill": (3, (True, False), NONE),
        "async_scheduling": (3, (True, False), NONE),
        "num_gpu_blocks_override": (3, (64, 65, 32, 256, 4, 1), (0, -1)),
        "attention_backend": (3, ("CPU_ATTN", "TORCH_SDPA", "FLASH_ATTN", "FLASHINFER", "TRITON_ATTN"), ("FAST",)),
        "quantization": (2, ("fp8", "awq", "gptq", "bitsandbytes"), ("homegrown",)),
        "hf_overrides": (
            5,
            (
                {"max_position_embeddings": 2048},
                {"max_position_embeddings": 128},
                {"rope_theta": 1000000.0},
                {"architectures": ["MistralForCausalLM"]},
                {"rope_scaling": YARN},
                {"vocab_size": 128256},
            ),
            ({},),
        ),
        "generation_config": (1, ("vllm", "auto"), NONE),
        "override_generation_config": (1, ({"min_p": 0.1}, {"repetition_penalty": 1.05}, {"top_k": 20}), ({},)),
        "load_format": (1, ("safetensors", "dummy", "auto"), ("homegrown",)),
        "disable_hybrid_kv_cache_manager": (1, (True, False), NONE),
        "disable_sliding_window": (1, (True,), NONE),
        "long_prefill_token_threshold": (1, (16, 64), (-1,)),
        "cudagraph_capture_sizes": (1, ([1, 2, 4], [1], [4, 8, 16]), ([],)),
        "gpu_memory_utilization": (1, (0.5, 0.95), (0, -1, 1.5)),
        "enable_lora": (1, (True,), NONE),
        "trust_remote_code": (1, (True,), NONE),
        "attention_config": (2, ({"backend": "CPU_ATTN"}, {"backend": "FLASH_ATTN"}), NONE),
        "compilation_config": (2, ({"mode": 0}, {"cudagraph_mode": "PIECEWISE"}), NONE),
        "mamba_cache_mode": (1, ("all", "align", "none"), NONE),
        "mamba_block_size": (1, (16,), NONE),
        "enable_expert_parallel": (1, (True,), NONE),
        "moe_backend": (1, ("triton", "auto"), NONE),
        "structured_outputs_config": (1, ({"backend": "xgrammar"},), NONE),
        "logits_processors": (1, (["a.module:Processor"],), NONE),
    },
)
SPECULATIVE = fields(
    "speculative",
    {
        "method": (
            4,
            ("eagle", "eagle3", "draft_model", "mtp", "medusa", "dflash", "ngram", "suffix", "mlp_speculator"),
            ("eagle4",),
        ),
        "num_speculative_tokens": (13, (1, 2, 5, 7, 8, 10, 16, 32, 64), (0, -1, 200, 1000)),
        "draft_tensor_parallel_size": (1, (1, 2), (0, -1)),
        "max_model_len": (8, (64, 128, 256, 512, 1024, 2048), (0, -1, 10**9)),
        "quantization": (2, ("fp8", "awq", "gptq"), ("homegrown",)),
        "disable_by_batch_size": (1, (1, 2, 64), (0, -1)),
        "parallel_drafting": (1, (True, False), NONE),
        "rejection_sample_method": (2, ("standard", "strict", "probabilistic", "synthetic", "block"), ("coin",)),
        "draft_sample_method": (1, ("greedy", "probabilistic"), ("coin",)),
        "attention_backend": (2, ("CPU_ATTN", "FLASH_ATTN", "FLASHINFER", "TRITON_ATTN"), ("FAST",)),
        "enforce_eager": (1, (True,), ("yes",)),
        "disable_padded_drafter_batch": (2, (True, False), NONE),
        "speculative_token_tree": (1, ("[(0,), (0, 0), (0, 0, 0)]", "[(0,), (1,), (0, 0)]"), ("tree",)),
        "prompt_lookup_max": (1, (5, 2), (0, -1)),
        "prompt_lookup_min": (1, (1, 5), (0, -1)),
        "moe_backend": (1, ("auto", "triton"), ("homegrown",)),
        "kv_cache_dtype": (1, ("auto", "fp8"), ("int3",)),
        "use_heterogeneous_vocab": (1, (True, False), NONE),
        "tensor_parallel_size": (1, (1, 2), NONE),
        "num_speculative_token": (1, (3,), NONE),
        "draft_model": (1, ("x",), NONE),
        "hf_overrides": (1, ({"max_position_embeddings": 2048},), NONE),
        "acceptance_method": (1, ("typical_acceptance_sampler",), NONE),
    },
)
GENERATION = fields(
    "generation",
    {
        "min_p": (2, (0.05, 0.1), (2.0,)),
        "repetition_penalty": (2, (1.05, 1.1), (-1.0,)),
        "temperature": (2, (0.6, 1.0), NONE),
        "top_k": (2, (20, 50), NONE),
        "top_p": (2, (0.8, 0.95), NONE),
        "eos_token_id": (2, ([2, 3], 151645), NONE),
        "max_new_tokens": (2, (4, 2048), NONE),
    },
)
# What rules read and one process on a CPU cannot show, or what belongs to models that no base is.
NOT_MUTATED: dict[str, tuple[str, ...]] = {
    "needs several devices": (
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "decode_context_parallel_size",
        "prefill_context_parallel_size",
        "distributed_executor_backend",
        "enable_eplb",
        "enable_dbo",
        "kv_transfer_config",
    ),
    "needs a compiler, and a minute a start": ("enforce_eager",),
    "of the request, not of the start": ("greedy", "reasoning_parser"),
    "of an attention that the bases have not": ("dual_chunk_attention_config",),
    "of layers that are no attention": (
        "mamba_cache_dtype",
        "mamba_ssm_cache_dtype",
        "mamba_chunk_size",
        "mamba_d_conv",
        "mamba_d_head",
        "mamba_d_ssm",
        "mamba_d_state",
        "mamba_expand",
        "mamba_headdim",
        "mamba_n_groups",
        "mamba_n_heads",
        "mamba_ngroups",
        "n_mamba_heads",
    ),
    "another nesting of the same keys": ("llm_config", "thinker_config", "model"),
}
FIELDS: tuple[Field, ...] = (*TARGET, *DRAFT, *SERVE, *SPECULATIVE, *GENERATION)
