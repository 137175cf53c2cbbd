"""Sampling with speculation on a CPU where no Triton kernel can run.

``expand_batch_to_tokens`` gives each draft token the temperature, top_k and top_p of its request. The released
stand-in fills a converted copy of the caller's buffer, which stays uninitialised. ``apply_top_k_top_p`` calls a Triton
kernel where Triton counts as there without a driver.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from typing import Any

from . import torch_kernels
from .changes import Plan, plain, rebound
from .inspection import need, text, tree
from .log import Inert

EXPAND = ["x", "cu_num_tokens", "num_tokens", "replace_from", "replace_to"]


def plan(module: Any, settings: dict[str, Any]) -> Plan:
    if triton_works():
        raise Inert("Triton works here, so that vLLM's own kernels run")
    found = [each for each in (_expand(), _top_k_top_p()) if each]
    if not found:
        raise Inert("the stand-in of expand_kernel fills the caller's buffer, and no Triton kernel is called")
    changes = [change for released, ours in found for change in rebound(released, ours)]
    return changes, "done in PyTorch: " + ", ".join(released.__name__ for released, _ in found)


def triton_works() -> bool:
    """Whether Triton counts as there and has a driver: an empty CUDA_VISIBLE_DEVICES lets it count without one."""
    if not getattr(importlib.import_module("vllm.triton_utils"), "HAS_TRITON", False):
        return False
    try:
        backends = importlib.import_module("triton.backends").backends
        return any(backend.driver and backend.driver.is_active() for backend in backends.values())
    except Exception:
        return False


def _expand() -> tuple[Any, Any] | None:
    """What is to be replaced, and by what; None where nothing is."""
    sampler = importlib.import_module("vllm.v1.sample.rejection_sampler")
    released = plain(need(sampler, "expand_batch_to_tokens"), "expand_batch_to_tokens")
    if released is torch_kernels.expand_batch_to_tokens:
        return None
    if list(inspect.signature(released).parameters) != EXPAND:
        raise Inert("expand_batch_to_tokens has other parameters")
    stand_in = need(importlib.import_module("vllm.utils.cpu_triton_utils"), "_expand_kernel_impl")
    if not fills_a_copy(stand_in) or _avoids_kernel(released):
        return None
    return released, torch_kernels.expand_batch_to_tokens


def fills_a_copy(stand_in: Any) -> bool:
    """Whether it converts its first argument, the output, and writes nothing back to it."""
    output = next(iter(inspect.signature(stand_in).parameters))
    calls = [text(node) for node in ast.walk(tree(stand_in)) if isinstance(node, ast.Call)]
    stores = [
        text(node.value)
        for node in ast.walk(tree(stand_in))
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    ]
    converts = any(call.startswith((f"_ensure_int64({output}", f"{output}.to(", f"{output}.long(")) for call in calls)
    return converts and output not in stores and not any(call.startswith(f"{output}.copy_(") for call in calls)


def _avoids_kernel(function: Any) -> bool:
    """Whether it asks for the platform or for Triton itself."""
    source = text(tree(function))
    return "is_cpu" in source or "HAS_TRITON" in source


def _top_k_top_p() -> tuple[Any, Any] | None:
    """With Triton absent the release falls back by itself; with a Triton that has no driver it may not."""
    ops = importlib.import_module("vllm.v1.sample.ops.topk_topp_sampler")
    released = need(ops, "apply_top_k_top_p")
    if not getattr(ops, "HAS_TRITON", False) or getattr(released, "_specfix_shim", False):
        return None
    fallback = need(ops, "apply_top_k_top_p_pytorch")
    for function in (released, fallback):
        if list(inspect.signature(plain(function, "apply_top_k_top_p")).parameters)[:3] != ["logits", "k", "p"]:
            raise Inert(f"{function.__name__} has other parameters")
    inspect.signature(fallback).bind("logits", "k", "p")  # raises where that does not suffice

    def apply_top_k_top_p(logits: Any, k: Any, p: Any, *_: Any, **__: Any) -> Any:
        # What else later releases pass chooses between variants of the Triton kernel.
        return logits if k is None and p is None else fallback(logits, k, p)

    apply_top_k_top_p._specfix_shim = True  # type: ignore[attr-defined]
    return released, apply_top_k_top_p
