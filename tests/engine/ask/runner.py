"""Which model runner the imported engine chooses, by its own configs of some seventy small pairs of models.

    ENGINE_PYTHON runner.py

The last line printed is one JSON object:

    {"cases": [{"name", "target": {config.json}, "draft": {config.json} or null, "serve": {…}, "flags": {…},
                "env": "" or the variable's value, "triton": …, "said": "V1", "V2" or null, "error": …}]}

``serve`` are the options that a deployment has names for, ``flags`` further arguments of the engine. Each pair is asked
with Triton and, where the variable is not set, without: whether it works is a name of the config's module, found when
that is imported, and false on a CPU. Where no config comes about, ``said`` is null and ``error`` is the beginning
of the engine's message. The configs are real: `EngineArgs(…).create_engine_config()` on folders with a config.json.
"""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VARIABLE = "VLLM_USE_V2_MODEL_RUNNER"
ENVIRONMENT = {"VLLM_LOGGING_LEVEL": "CRITICAL", "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}

BASE = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "num_hidden_layers": 8,
    "vocab_size": 512,
    "max_position_embeddings": 1024,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "bfloat16",
}
SLIDING, FULL = "sliding_attention", "full_attention"


def model(architecture: str, model_type: str, **more: Any) -> dict[str, Any]:
    return {**BASE, "architectures": [architecture], "model_type": model_type, **more}


LLAMA = model("LlamaForCausalLM", "llama")
QWEN3 = model("Qwen3ForCausalLM", "qwen3")
QWEN3_MOE = model("Qwen3MoeForCausalLM", "qwen3_moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64)
MIXTRAL = model("MixtralForCausalLM", "mixtral", num_local_experts=4, num_experts_per_tok=2)
GEMMA2 = model("Gemma2ForCausalLM", "gemma2", sliding_window=64, query_pre_attn_scalar=64)
GEMMA3 = model("Gemma3ForCausalLM", "gemma3_text", sliding_window=64, layer_types=[SLIDING, FULL] * 4)
GPT_OSS = model(
    "GptOssForCausalLM", "gpt_oss", num_local_experts=4, num_experts_per_tok=2, sliding_window=64,
    layer_types=[SLIDING, FULL] * 4,
)  # fmt: skip
DEEPSEEK = model(
    "DeepseekV3ForCausalLM", "deepseek_v3", n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, n_group=1,
    topk_group=1, moe_intermediate_size=64, first_k_dense_replace=1, kv_lora_rank=64, q_lora_rank=64,
    qk_nope_head_dim=64, qk_rope_head_dim=64, v_head_dim=64, num_nextn_predict_layers=1,
)  # fmt: skip
QWEN3_NEXT = model(
    "Qwen3NextForCausalLM", "qwen3_next", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64,
    shared_expert_intermediate_size=64, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=64,
    linear_value_head_dim=64, layer_types=["linear_attention", FULL] * 4,
)  # fmt: skip
NEMOTRON_H = model("NemotronHForCausalLM", "nemotron_h", hybrid_override_pattern="M*M-M*M-", ssm_state_size=64)
JAMBA = model("JambaForCausalLM", "jamba", attn_layer_period=4, attn_layer_offset=2, num_experts=2)
MAMBA = model("MambaForCausalLM", "mamba", state_size=16)
MAMBA2 = model("Mamba2ForCausalLM", "mamba2", num_heads=4, expand=2, state_size=64, n_groups=1)
OTHERS = {
    "mistral": model("MistralForCausalLM", "mistral"),
    "qwen2": model("Qwen2ForCausalLM", "qwen2"),
    "phi3": model("Phi3ForCausalLM", "phi3", pad_token_id=0),
    "granite": model("GraniteForCausalLM", "granite"),
    "qwen2-moe": model(
        "Qwen2MoeForCausalLM", "qwen2_moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64,
        shared_expert_intermediate_size=64,
    ),
    "olmoe": model("OlmoeForCausalLM", "olmoe", num_experts=4, num_experts_per_tok=2),
    "opt": model("OPTForCausalLM", "opt", ffn_dim=256, do_layer_norm_before=True, word_embed_proj_dim=128),
    "mixtral": MIXTRAL,
    "gemma2": GEMMA2,
    "gemma3": GEMMA3,
    "gpt-oss": GPT_OSS,
    "deepseek": DEEPSEEK,
    "qwen3-next": QWEN3_NEXT,
    "nemotron-h": NEMOTRON_H,
    "jamba": JAMBA,
    "mamba": MAMBA,
    "mamba2": MAMBA2,
}  # fmt: skip

EAGLE3 = model("LlamaForCausalLMEagle3", "llama", num_hidden_layers=1, draft_vocab_size=512, target_hidden_size=128)
EAGLE = model("EagleLlamaForCausalLM", "llama", num_hidden_layers=1)
SMALL = {**LLAMA, "num_hidden_layers": 2}
DFLASH = model(
    "DFlashDraftModel", "qwen3", num_hidden_layers=2, block_size=4,
    dflash_config={"mask_token_id": 3, "target_layer_ids": [1, 3, 5]},
)  # fmt: skip
DSPARK = model(
    "Qwen3DSparkModel", "qwen3", num_hidden_layers=2, block_size=4, mask_token_id=3, target_layer_ids=[1, 3, 5],
)  # fmt: skip
MEDUSA = {"architectures": ["MedusaModel"], "model_type": "medusa", "hidden_size": 128, "vocab_size": 512,
          "num_heads": 3, "num_hidden_layers": 1, "truncated_vocab_size": 512}  # fmt: skip
FP8 = {"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}


def cases() -> Iterator[tuple[str, dict[str, Any], dict[str, Any] | None, dict[str, Any], dict[str, Any]]]:
    """Name, target, draft, options that a deployment names, further arguments."""
    eagle3 = {"method": "eagle3"}
    yield "llama eagle3", LLAMA, EAGLE3, eagle3, {}
    yield "qwen3 eagle3", QWEN3, EAGLE3, eagle3, {}
    yield "qwen3-moe eagle3", QWEN3_MOE, EAGLE3, eagle3, {}
    for name, target in OTHERS.items():
        yield f"{name} eagle3", target, EAGLE3, eagle3, {}
    for name, target in OTHERS.items():
        yield f"{name} ngram", target, None, {"method": "ngram"}, {}
    yield "llama eagle", LLAMA, EAGLE, {"method": "eagle"}, {}
    yield "llama ngram", LLAMA, None, {"method": "ngram"}, {}
    yield "llama draft_model", LLAMA, SMALL, {"method": "draft_model"}, {}
    yield "llama medusa", LLAMA, MEDUSA, {"method": "medusa"}, {}
    yield "qwen3 suffix", QWEN3, None, {"method": "suffix"}, {}
    yield "deepseek mtp", DEEPSEEK, None, {"method": "mtp"}, {}
    yield "qwen3-next mtp", QWEN3_NEXT, None, {"method": "mtp"}, {}
    yield "qwen3 dflash", QWEN3, DFLASH, {"method": "dflash"}, {}
    yield "qwen3 dflash all full", QWEN3, {**DFLASH, "layer_types": [FULL] * 2}, {"method": "dflash"}, {}
    mixed = {**DFLASH, "layer_types": [SLIDING, FULL], "sliding_window": 64, "use_sliding_window": True}
    yield "qwen3 dflash mixed", QWEN3, mixed, {"method": "dflash"}, {}
    yield "gpt-oss dflash mixed", GPT_OSS, mixed, {"method": "dflash"}, {}
    yield (
        "qwen3 dflash with a candidate head",
        QWEN3,
        {**DFLASH, "architectures": ["DFlash2DraftModel"]},
        {"method": "dflash"},
        {},
    )
    yield "qwen3 dspark", QWEN3, DSPARK, {"method": "dspark"}, {}
    options: dict[str, dict[str, Any]] = {
        "pipeline": {"pipeline_parallel_size": 2},
        "tensor": {"tensor_parallel_size": 2},
        "both": {"pipeline_parallel_size": 2, "tensor_parallel_size": 2},
        "eager": {"enforce_eager": True},
        "short": {"max_model_len": 256},
        "float32": {"dtype": "float32"},
        "blocks of 32": {"block_size": 32},
    }
    for name, more in options.items():
        yield f"qwen3 eagle3 {name}", QWEN3, EAGLE3, {**eagle3, **more}, {}
    yield "qwen3 ngram pipeline", QWEN3, None, {"method": "ngram", "pipeline_parallel_size": 2}, {}
    yield "qwen3-moe eagle3 pipeline", QWEN3_MOE, EAGLE3, {**eagle3, "pipeline_parallel_size": 2}, {}
    yield "qwen3 fp8 eagle3", {**QWEN3, **FP8}, EAGLE3, eagle3, {}
    yield "llama of two names eagle3", {**LLAMA, "architectures": ["Nobody", "LlamaForCausalLM"]}, EAGLE3, eagle3, {}
    flags: dict[str, dict[str, Any]] = {
        "prompt embeds": {"enable_prompt_embeds": True},
        "no prefix caching": {"enable_prefix_caching": False},
        "no async scheduling": {"async_scheduling": False},
        "fast prefill": {"kv_sharing_fast_prefill": True},
        "routed experts": {"enable_return_routed_experts": True},
        "logits processors": {"logits_processors": ["somewhere:Processor"]},
        "by transformers": {"model_impl": "transformers"},
        "adaptive": {"speculative_config": {"enable_adaptive_verification": True}},
        "parallel drafting": {"speculative_config": {"parallel_drafting": True}},
    }
    for name, more in flags.items():
        yield f"qwen3 eagle3 {name}", QWEN3, EAGLE3, eagle3, more


def main() -> None:
    """Ask for each case."""
    os.environ.update(ENVIRONMENT)
    os.environ.pop(VARIABLE, None)
    registry = importlib.import_module("vllm.model_executor.models.registry")
    # a class is inspected in a process of its own, seconds for each: here it is done without one
    vars(registry)["_run_in_subprocess"] = lambda function: function()
    said = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, target, draft, serve, flags) in enumerate(cases()):
            paths = [write(Path(folder) / f"{number}-{side}", config) for side, config in
                     (("target", target), ("draft", draft)) if config]  # fmt: skip
            for env, triton in (("", True), ("", False), ("0", True), ("1", True)):
                case = {"name": name, "target": target, "draft": draft, "serve": serve, "flags": flags}
                said.append({**case, "env": env, "triton": triton, **answer(paths, serve, flags, env, triton)})
    print(json.dumps({"cases": said}))


def write(folder: Path, config: dict[str, Any]) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def answer(paths: list[str], serve: dict[str, Any], flags: dict[str, Any], env: str, triton: bool) -> dict[str, Any]:
    """What the engine chooses, or why it makes no config."""
    module = importlib.import_module("vllm.config.vllm")
    engine_args = importlib.import_module("vllm.engine.arg_utils").EngineArgs
    os.environ.pop(VARIABLE, None)
    if env:
        os.environ[VARIABLE] = env
    if hasattr(module, "HAS_TRITON"):
        vars(module)["HAS_TRITON"] = triton
    options = {key: value for key, value in serve.items() if key != "method"}
    speculative = {"method": serve["method"], "num_speculative_tokens": 3, **flags.get("speculative_config", {})}
    if len(paths) > 1:
        speculative["model"] = paths[1]
    more = {key: value for key, value in flags.items() if key != "speculative_config"}
    try:
        arguments = engine_args(
            model=paths[0], skip_tokenizer_init=True, speculative_config=speculative,
            **{"max_model_len": 512, **options, **more},
        )  # fmt: skip
        config = arguments.create_engine_config()
        if hasattr(type(config), "use_v2_model_runner"):
            v2 = config.use_v2_model_runner
        else:  # the worker goes by the variable
            v2 = importlib.import_module("vllm.envs").VLLM_USE_V2_MODEL_RUNNER
        return {"said": "V2" if v2 else "V1", "error": None}
    except Exception as error:  # whatever the engine says of such a pair
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return {"said": None, "error": f"{type(error).__name__}: {' | '.join(lines[:4])}"[:300]}


if __name__ == "__main__":
    main()
