"""KVC014: the KV cache of one sequence is larger than the memory that there is for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Hardware, Location, Model, Serving, Target
from specfix.deployment.expected import is_count
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of, first_known
from specfix.facts.attention import is_mla
from specfix.facts.blocks import windowed
from specfix.facts.budget import GIB, size
from specfix.facts.memory import Memory, utilization
from specfix.facts.quantisation import stated
from specfix.facts.weights import DraftHead

BLOCKS, BYTES = "num_gpu_blocks_override", "kv_cache_memory_bytes"
SPACE = "VLLM_CPU_KVCACHE_SPACE"  # on a CPU it counts more than any flag
GIBS = re.compile("[1-9][0-9]{0,5}")
HEADS_OF = frozenset({"eagle", "eagle3"})  # methods whose heads have attention of their own alone
WIDTHS = {"float16": 2, "bfloat16": 2, "float32": 4}  # bytes of a value
LAYERS, HEADS = "num_hidden_layers", "num_attention_heads"


@rule(
    "KVC014",
    "sequence-exceeds-memory",
    severity="error",
    evidence=["vllm/v1/core/kv_cache_utils.py: check_enough_kv_cache_memory"],
    requires=["KVC013", "PAR009"],
)
def sequence_exceeds_memory(
    target: Target,
    serving: Serving,
    hardware: Hardware,
    engine: Engine,
    served_length: int,
    method: str,
    draft: Draft | None = None,
    draft_head: DraftHead | None = None,
    served_dtype: str | None = None,
    memory: Memory | None = None,
) -> Iterator[Finding]:
    """Not even one sequence of the served length has room in the KV cache."""
    if serving.flag(BLOCKS) is not None or served_length <= 0:
        raise NotApplicable("the size of the cache is another, or is fitted")
    if size(serving, "decode_context_parallel_size") * size(serving, "prefill_context_parallel_size") > 1:
        raise NotApplicable("a sequence is split among ranks")
    if not known(engine.blocks.sequence_checked, f"whether {engine} asks for room for one sequence"):
        raise NotApplicable("the release does not ask for that")
    room, given, place = room_for(serving, hardware, engine, memory)
    name = architecture_of(target, engine)
    built = engine.eagle.decoders.get(name)
    layers = -(-target.integer(LAYERS) // serving.pipeline_parallel_size)
    kept, width = kept_heads(target, serving, built is None or built.head_dim)
    block = serving.block_size or 1
    tokens = -(-served_length // block) * block
    drafting = of_draft(draft, draft_head, method, serving, engine)
    values = 2 * (layers * kept * width + drafting)  # of a token
    if room <= 0 or tokens * values * max(WIDTHS.values()) <= room:
        return
    value = value_width(target, serving, served_dtype, engine)
    a_token = values * value
    if tokens * a_token <= room:
        return
    if built is None or windowed(target):  # latent attention, windows and recurrent layers keep less
        raise MissingFact(f"the KV cache of each layer of {name}")
    fitting = room // a_token // block * block
    rounded = f", in blocks of {block}" if tokens != served_length else ""
    mend = f"a --max-model-len below {fitting}, or more memory for the cache" if fitting else "a smaller --block-size"
    needed = tokens * a_token / GIB
    digits = 1 if needed - room / GIB > 1 / 10 else 4  # so that the two are seen to differ
    counted = f"{layers} layers, {kept} heads of {width}" + (", and the draft's" if drafting else "")
    yield Finding(
        f"One sequence of the served length, {served_length}{rounded}, takes {needed:.{digits}f} GiB of KV cache on "
        f"each device ({counted}, {value} bytes a value). There is room for {room / GIB:.{digits}f} at most ({given}): "
        f"{engine} refuses to start.",
        serving.at("max_model_len" if fitting else "block_size"),
        "load",
        related=(place,),
        repair=Repair("manual", mend, ("engine_args",)),
    )


def kept_heads(model: Model, serving: Serving, stated: bool = True) -> tuple[int, int]:
    """Key heads that a device keeps, and the width of one; ``stated``: the model's class asks for head_dim."""
    heads = model.integer(HEADS)
    kept = max(1, int(model.number("num_key_value_heads") or heads) // serving.tensor_parallel_size)
    width = model.number("head_dim") if stated else None
    return kept, int(width or model.integer("hidden_size") // max(heads, 1))


def of_draft(draft: Draft | None, head: DraftHead | None, method: str, serving: Serving, engine: Engine) -> int:
    """Keys of a token that the draft keeps beside the target's, at least: 0 where that is not known."""
    if draft is None or windowed(draft) or is_mla(draft):
        return 0
    if serving.pipeline_parallel_size > 1 or serving.speculative.get("kv_cache_dtype"):  # elsewhere, or narrower
        return 0
    with suppress(MissingFact):
        kept, width = kept_heads(draft, serving)
        if head is not None and method in HEADS_OF:
            return head.layers * kept * width
        if method == "draft_model" and first_known(draft.architectures, engine) in engine.eagle.decoders:
            return draft.integer(LAYERS) * kept * width
    return 0


def room_for(serving: Serving, hardware: Hardware, engine: Engine, memory: Memory | None) -> tuple[int, str, Location]:
    """Bytes that the cache of a device has at most, what gives them, and where that stands."""
    if hardware.platform == "cpu":
        space = serving.env.get(SPACE, "")
        if GIBS.fullmatch(space):
            return int(space) * GIB, SPACE, serving.at(SPACE)
        heeded = serving.flag(BYTES) and known(engine.cpu.cache_bytes_heeded, f"what {engine} makes of it on a CPU")
        if space or not heeded:
            raise NotApplicable("the cache takes its memory from the host")
    fixed = serving.flag(BYTES)
    if fixed is not None and not is_count(fixed):
        raise MissingFact(f"a whole number as --{BYTES.replace('_', '-')}")
    if fixed:
        return int(fixed), f"--{BYTES.replace('_', '-')}", serving.at(BYTES)
    gib = known(hardware.memory_gib, f"the memory of {hardware.name}")
    weights = memory.needed if memory and memory.target.counted and memory.draft.counted else 0
    given = f"of the {gib:g} of {hardware.name}" + (", less the weights" if weights else "")
    return int(gib * GIB * utilization(serving, engine)) - weights, given, hardware.at("memory_gib")


def value_width(target: Target, serving: Serving, served_dtype: str | None, engine: Engine) -> int:
    """Bytes of a value in the cache, at least."""
    asked = serving.kv_cache_dtype or "auto"
    if asked.startswith("fp8") or (asked == "auto" and (stated(target, engine) or serving.flag("quantization"))):
        return 1  # a quantised checkpoint may bring scales for the cache
    if asked == "auto" and served_dtype is None:
        return min(WIDTHS.values())
    name = served_dtype if asked == "auto" else asked
    return known(WIDTHS.get(str(name)), f"the width of a {name} cache")
