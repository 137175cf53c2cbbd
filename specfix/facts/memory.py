"""How much memory the weights take: counted from headers, or estimated from a config's dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from specfix.deployment import Draft, Hardware, Model, Serving, Target, headers
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.budget import GIB, size
from specfix.facts.parallel import draft_parallel_size
from specfix.facts.quantisation import in_mtp
from specfix.record import record

# bits of a value, by a safetensors header's name of its type: of those too whose size headers are not held to
BITS: Final = {
    **headers.BITS,
    "C64": 64,
    **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
EXPERTS: Final = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
WIDE: Final = ("float32", "float")
TABLES: Final = ("embed_tokens.weight", "lm_head.weight")
# what makes weights smaller, or keeps them elsewhere, in ways that no header tells
CHANGES_WEIGHTS: Final = (
    *("quantization", "load_format", "hf_overrides", "language_model_only", "mm_encoder_only"),
    *("cpu_offload_gb", "offload_backend", "offload_group_size"),
)
# tables of n-grams, which such releases keep in the host's memory
NGRAMS: Final = ("engram_layer_ids", "ple_layer_ids")


@record(frozen=True)
class Weights:
    """Bytes of a model's weights; ``counted`` from its headers, else estimated, from below, from its config."""

    size: int
    counted: bool


@record(frozen=True)
class Memory:
    """Of one device, in bytes: the weights of both sides on it, and what the engine may take of its memory. ``cut``
    and ``draft_cut``: among how many devices the weights are divided at most."""

    target: Weights
    draft: Weights
    cut: int
    draft_cut: int
    needed: int
    allowed: int
    share: float


def memory(target: Target, draft: Draft, serving: Serving, method: str, engine: Engine, hardware: Hardware) -> Memory:
    """What the weights need of each device at least. NotApplicable where that is not decided here."""
    if hardware.platform == "cpu":
        raise NotApplicable("a CPU takes its memory from the host")
    if any(serving.flag(name) for name in CHANGES_WEIGHTS) or serving.speculative.get("quantization"):
        raise NotApplicable("the weights are changed while they are loaded")
    if target.config.value(*NGRAMS):
        raise MissingFact("where the tables of n-grams are kept")
    gib = known(hardware.memory_gib, f"the memory of {hardware.name}")
    built_in = draft.config.file == target.config.file
    wide = serving.dtype in WIDE
    layers, tied = target.number("num_hidden_layers"), bool(target.config.value("tie_word_embeddings"))

    def not_loaded(name: str) -> bool:
        return (not built_in and in_mtp(name, layers)) or (tied and name.endswith("lm_head.weight"))

    of_target = weights(target, wide, not_loaded)
    # the target's own MTP layers are counted with it
    of_draft = Weights(0, True) if built_in else weights(draft, wide, lambda name: may_share(name, draft, target))
    cut = serving.tensor_parallel_size * serving.pipeline_parallel_size * ranks_of_experts(target, serving)
    # not every runner minds the draft's own size: the larger one counts
    draft_cut = max(serving.tensor_parallel_size, draft_parallel_size(serving)) * ranks_of_experts(draft, serving)
    needed = of_target.size // cut + of_draft.size // draft_cut
    # who says how much the KV cache takes has the whole of the rest for the weights
    share = 1.0 if serving.flag("kv_cache_memory_bytes") else utilization(serving, engine)
    return Memory(of_target, of_draft, cut, draft_cut, needed, int(gib * GIB * share), share)


def ranks_of_experts(model: Model, serving: Serving) -> int:
    """Among how many times more ranks than the tensor parallel ones experts are cut, with --enable-expert-parallel or
    without (``flatten_tp_across_dp``). What is no expert is not cut there, so that a device bears more than this."""
    ranks = size(serving, "data_parallel_size") * size(serving, "prefill_context_parallel_size")
    return ranks if ranks > 1 and (serving.flag("enable_expert_parallel") or model.config.value(*EXPERTS)) else 1


def utilization(serving: Serving, engine: Engine) -> float:
    """--gpu-memory-utilization, else the release's default."""
    given = serving.flag("gpu_memory_utilization")
    if given is None:
        flag = (engine.serve.flags or {}).get("gpu-memory-utilization")
        given = None if flag is None else flag.default
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= 1:
        raise MissingFact("--gpu-memory-utilization")
    return float(given)


def may_share(name: str, draft: Draft, target: Target) -> bool:
    """Whether the engine may put the target's tensor in the place of the draft's, which then is not kept."""
    if draft.kind == "draft_model" or not name.endswith(TABLES):
        return False
    ours, theirs = (draft.tensors or {})[name].shape, target.tensors
    leaf = ".".join(name.split(".")[-2:])
    return theirs is None or any(each.endswith(leaf) and tensor.shape == ours for each, tensor in theirs.items())


def weights(model: Model, wide: bool = False, left_out: Callable[[str], bool] = lambda _: False) -> Weights:
    """From the headers where they are at hand: without the tensors that are ``left_out``, as they are not loaded or not
    kept. Of float32 matrices two bytes a value are kept, unless they are served ``wide``."""
    if model.tensors is not None:
        files = {tensor.file for tensor in model.tensors.values()}
        copies = {file for file in files if "consolidated" in file}  # the same weights in another format, not loaded
        bits = 0
        for name, tensor in model.tensors.items():
            if (tensor.file in copies and copies != files) or left_out(name):
                continue
            count = 1
            for length in tensor.shape:
                count *= length
            size = known(BITS.get(tensor.dtype), f"the size of a {tensor.dtype} value")
            bits += count * (16 if tensor.dtype in ("F32", "F64") and len(tensor.shape) > 1 and not wide else size)
        return Weights(bits // 8, True)
    return Weights(estimated(model), False)


def estimated(model: Model) -> int:
    """Of a dense model with plain attention: its matrices alone, two bytes a value."""
    if model.config.value("quantization_config"):
        raise MissingFact(f"a safetensors header of {model.reference}, which is quantised")
    if model.config.find(*EXPERTS) or model.number("kv_lora_rank"):
        raise MissingFact(f"a safetensors header of {model.reference}, which is no plain dense model")
    if (model.config.value("torch_dtype", "dtype") or "bfloat16") not in ("bfloat16", "float16"):
        raise MissingFact(f"a safetensors header of {model.reference}")
    hidden, heads = model.integer("hidden_size"), model.integer("num_attention_heads")
    kv = model.number("num_key_value_heads") or heads
    width = model.number("head_dim") or hidden // heads
    attention = hidden * width * (2 * heads + 2 * kv)
    mlp = 3 * hidden * model.integer("intermediate_size")
    rows = model.integer("vocab_size")
    heads_and_tables = hidden * (rows if model.config.value("tie_word_embeddings") else 2 * rows)
    if isinstance(model, Draft) and model.kind != "draft_model":
        heads_and_tables = 0  # it may share the target's
    return 2 * (model.integer("num_hidden_layers") * (attention + mlp) + heads_and_tables)
