"""What is run on a GPU beside the committed mutations: what only a GPU has, over the same bases."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from .bases import BASES, POSITIONS, Case
from .mutations import base, drawn

MIB = 2**20
V2 = {"VLLM_USE_V2_MODEL_RUNNER": "1"}
# so that several engines can share the GPU: none looks how much memory is free
SHARED = {"kv_cache_memory_bytes": 1024 * MIB, "gpu_memory_utilization": 0.05}
USUAL = ("FLASH_ATTN", "TRITON_ATTN", "FLEX_ATTENTION")
OTHERS = ("FLASHMLA", "TREE_ATTN", "CPU_ATTN", "TURBOQUANT", "XFORMERS", "ROCM_ATTN")
BLOCKS = (1, 4, 8, 16, 24, 32, 48, 64, 100, 128, 256, 512)
CACHES = ("fp8", "fp8_e4m3", "fp8_e5m2", "bfloat16", "float16", "fp8_inc", "fp8_ds_mla", "nvfp4", "int8")
DTYPES = ("float16", "float32", "half", "auto")
GRAPHS = ("NONE", "FULL", "PIECEWISE", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
# MiB of cache, and the length served; a token of the pair's nine layers takes 4.5 KiB
ROOMS = [*itertools.product((8, 16, 32, 64, 128), (1024, 4096, 16384))]
CLOSE = [(17.9, 4096), (18, 4096), (18.2, 4096), (71, 16384), (72, 16384), (73, 16384)]


@cache
def cases() -> dict[str, Case]:
    """Every case that is run on a GPU, by name; the mutations are the committed ones. Nobody changes one."""
    found = dict(of_gpu())
    for name, mutation in drawn().items():
        if not any(f"serve:{key}" in name for key in SHARED):
            found[name] = mutation.case()
    return {name: shared(case) for name, case in found.items()}


def shared(case: Case) -> Case:
    case.serve = SHARED | case.serve
    return case


def of_gpu() -> Iterator[tuple[str, Case]]:
    for name in BASES:
        yield made(name)
        yield made(name, env=V2)
    for backend in OTHERS:
        yield made("plain", attention_backend=backend)
    yield from of_backend({})
    for backend in USUAL:
        yield from of_backend({"attention_backend": backend})
    for count in (2, 3, 4, 8):
        yield made("plain", tensor_parallel_size=count)
    for count in (2, 8):
        yield made("plain", pipeline_parallel_size=count)
    yield made("draft-model", speculative={"draft_tensor_parallel_size": 2})
    for room, length in (*ROOMS, *CLOSE):
        yield of_length(length, kv_cache_memory_bytes=int(room * MIB))
    for count, name in itertools.product((1, 3, 7), ("plain", "draft-model", "eagle")):
        for env in ({}, V2):
            yield made(name, {"num_speculative_tokens": count}, env, enforce_eager=False)
    for mode in GRAPHS:
        graphs: dict[str, Any] = {"enforce_eager": False, "compilation_config": {"mode": 0, "cudagraph_mode": mode}}
        yield made("plain", **graphs)
        for backend in ("TRITON_ATTN", "FLEX_ATTENTION"):
            yield made("plain", **graphs, attention_backend=backend)


def of_backend(asked: dict[str, Any]) -> Iterator[tuple[str, Case]]:
    for size in BLOCKS:
        yield made("plain", **asked, block_size=size)
    for dtype in CACHES:
        yield made("plain", **asked, kv_cache_dtype=dtype)
    for dtype in DTYPES:
        yield made("plain", **asked, dtype=dtype)
    for name in ("sliding-window", "draft-model"):
        yield made(name, **asked)
    for own in ("FLASH_ATTN", "TRITON_ATTN", "FLEX_ATTENTION", "FLASHMLA", "CPU_ATTN"):
        speculative = {"attention_backend": own}
        for name in ("plain", "draft-model"):
            yield made(name, speculative, **asked)
        yield made("plain", speculative, V2, **asked)
    if asked:
        yield made("plain", env=V2, **asked)
    yield made("plain", env=V2, kv_cache_dtype="fp8", **asked)


def made(
    name: str, speculative: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None, **serve: Any
) -> tuple[str, Case]:
    """A base with more flags, keys of the speculative config, and variables; its name says which."""
    case = base(name)
    case.serve |= copy.deepcopy(serve)
    case.speculative |= speculative or {}
    case.env = dict(env or {})
    parts = [f"{key}={value}" for key, value in (*serve.items(), *(speculative or {}).items(), *case.env.items())]
    return " ".join([f"{name}:", *parts]), case


def of_length(length: int, **serve: Any) -> tuple[str, Case]:
    """The plain pair for sequences of this length, in as many blocks as there is room for."""
    name, case = made("plain", max_model_len=length, **serve)
    del case.serve["num_gpu_blocks_override"]
    case.target["max_position_embeddings"] = case.draft["max_position_embeddings"] = max(length, POSITIONS)
    return name, case
