"""What the classes of the attention backends, and the platforms, answer on a CPU build."""

from __future__ import annotations

import importlib
import json
import sys
import types
from typing import Any

CAPABILITIES = ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1))
HEAD_SIZES = range(1, 641)
DTYPES = ("float16", "bfloat16", "float32")
FLAGS = {
    "mla": "is_mla",
    "sparse": "is_sparse",
    "non_causal": "supports_non_causal",
    "sinks": "supports_sink",
    "mm_prefix": "supports_mm_prefix",
    "sliding_window": "supports_sliding_window",
}
LAYOUTS = ("supported_kv_cache_layouts", "get_required_kv_cache_layout")
HEADS = (8, 64)
MEMORY = (8 << 30, 80 << 30, 141 << 30, 192 << 30)


def main() -> None:
    sys.modules["vllm.platforms.rocm"] = None  # type: ignore[assignment]  # without a GPU its import ends the process
    print(json.dumps({"backends": dict(backends()), "platforms": platforms(), "own_cache": own_cache()}))


def backends() -> Any:
    """By name: the path, whether the class is there, and its answers. What fails to answer is left out."""
    registry = importlib.import_module("vllm.v1.attention.backends.registry")
    for name, member in registry.AttentionBackendEnum.__members__.items():
        found: dict[str, Any] = {"path": member.value or None}
        if member.value:
            try:
                cls = member.get_class()
            except Exception as error:  # what it needs is not on this machine, or not in the release
                found["error"] = f"{type(error).__name__}: {error}"
            else:
                found |= answers(cls)
        yield name, found


def answers(cls: Any) -> dict[str, Any]:
    torch = importlib.import_module("torch")
    interface = importlib.import_module("vllm.platforms.interface")
    attention = importlib.import_module("vllm.v1.attention.backend")
    cache = importlib.import_module("vllm.config.cache")
    typing = importlib.import_module("typing")
    values = typing.get_args(cache.CacheDType)
    questions = {
        "dtypes": lambda: [name for name in DTYPES if cls.supports_dtype(getattr(torch, name))],
        "kv_cache_dtypes": lambda: [value for value in values if cls.supports_kv_cache_dtype(value)],
        "head_sizes": lambda: [size for size in HEAD_SIZES if cls.supports_head_size(size)],
        "attention_types": lambda: [t.value for t in attention.AttentionType if cls.supports_attn_type(t.value)],
        "capability": lambda: [
            pair for pair in CAPABILITIES if cls.supports_compute_capability(interface.DeviceCapability(*pair))
        ],
        "block_sizes": lambda: [
            {"multiple": size.base} if hasattr(size, "base") else size
            for size in cls.get_supported_kernel_block_sizes()
        ],
        "layouts": lambda: layouts(cls),
        **{name: getattr(cls, method) for name, method in FLAGS.items() if hasattr(cls, method)},
    }
    found = {}
    for name, ask in questions.items():
        try:
            found[name] = ask()
        except Exception as error:
            found[f"{name} failed"] = f"{type(error).__name__}: {error}"
    return found


def layouts(cls: Any) -> list[str]:
    for method in LAYOUTS:
        if hasattr(cls, method):
            answer = getattr(cls, method)()
            given = [] if answer is None else [answer] if isinstance(answer, str) else answer
            return [layout if isinstance(layout, str) else layout.name for layout in given]
    return []


def own_cache() -> dict[str, list[str]] | None:
    """The KV caches that DeepSeek V4's attention refuses, and the backends with which it is made without a format of
    its own. None where the release decides that in a layer, which a CPU build cannot make."""
    try:
        attention = importlib.import_module("vllm.models.deepseek_v4.attention")
        model = importlib.import_module("vllm.models.deepseek_v4.nvidia.model")
    except ModuleNotFoundError:
        return None
    registry = importlib.import_module("vllm.v1.attention.backends.registry")
    cache = importlib.import_module("vllm.config.cache")
    typing = importlib.import_module("typing")
    found: dict[str, list[str]] = {"refuses": [], "plain": []}
    for value in typing.get_args(cache.CacheDType):
        try:
            attention._resolve_dsv4_kv_cache_dtype(True, value, None)
        except (AssertionError, ValueError):
            found["refuses"].append(value)
    for name, backend in registry.AttentionBackendEnum.__members__.items():
        config = types.SimpleNamespace(attention_config=types.SimpleNamespace(backend=backend))
        try:
            cls = model._select_dsv4_attn_cls(config)
        except ValueError:  # a backend that is no such model's
            continue
        if not cls.use_fp8_ds_mla_layout:
            found["plain"].append(name)
    return found


def platforms() -> dict[str, Any]:
    """CPU's answers, and those of CUDA that need no device."""
    current = importlib.import_module("vllm.platforms").current_platform
    return {
        "cpu": {
            "dtypes": [str(dtype).removeprefix("torch.") for dtype in current.supported_dtypes],
            "architecture": current.get_cpu_architecture().name,
            "batch": batches(current, None, None, ""),
            "batch of two": batches(current, None, None, "", 2),
        },
        "cuda": cuda(current),
    }


def cuda(current: Any) -> dict[str, Any]:
    for kernels in ("vllm._C", "vllm._C_stable_libtorch"):  # of the CUDA build, which decide nothing
        sys.modules.setdefault(kernels, types.ModuleType(kernels))
    module = importlib.import_module("vllm.platforms.cuda")
    interface = importlib.import_module("vllm.platforms.interface")
    platform = type("Cuda", (module.CudaPlatformBase,), {})
    return {
        "priorities": [
            {"use_mla": mla, "capability": pair, "num_heads": heads, "order": order}
            for mla in (False, True)
            for pair in CAPABILITIES
            for heads in HEADS
            for order in [priorities(module, mla, interface.DeviceCapability(*pair), heads)]
        ],
        "batches": [
            {"device_memory": memory, "device_name": name, "batch": batches(current, platform, memory, name)}
            for memory in MEMORY
            for name in ("nvidia a100-sxm4-80gb", "nvidia h200")
        ],
        "dtypes": [
            {"capability": pair, "dtypes": dtypes(platform, interface.DeviceCapability(*pair))} for pair in CAPABILITIES
        ],
    }


def priorities(module: Any, mla: bool, capability: Any, heads: int) -> list[str]:
    ask = module._get_backend_priorities
    return [backend.name for backend in getattr(ask, "__wrapped__", ask)(mla, capability, heads)]


def dtypes(platform: Any, capability: Any) -> list[str]:
    platform.get_device_capability = classmethod(lambda cls, device_id=0: capability)
    return [str(dtype).removeprefix("torch.") for dtype in platform().supported_dtypes]


def batches(current: Any, platform: Any, memory: int | None, name: str, workers: int = 1) -> list[dict[str, int]]:
    """Both tables of defaults, with ``platform`` in the place of the machine's own."""
    arguments = importlib.import_module("vllm.engine.arg_utils")
    if platform is not None:
        interface = importlib.import_module("vllm.platforms.interface")
        platform.get_device_total_memory = classmethod(lambda cls, device_id=0: memory)
        platform.get_device_name = classmethod(lambda cls, device_id=0: name.upper())
        platform.get_device_capability = classmethod(lambda cls, device_id=0: interface.DeviceCapability(9, 0))
        vars(arguments)["current_platform"] = platform()
    try:
        tables = arguments.EngineArgs.get_batch_defaults(workers)
    finally:
        vars(arguments)["current_platform"] = current
    return [{context.name: value for context, value in table.items()} for table in tables]


if __name__ == "__main__":
    main()
