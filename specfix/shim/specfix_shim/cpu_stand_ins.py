"""Stand-ins of the sampling kernels that are called with arguments which they do not know.

The replacements take every argument and do what it means, so that nothing is ignored that would matter:
SYNTHETIC_MODE and the two tensors beside it (a benchmark mode, off by default), NO_DRAFT_PROBS, and
USE_FP64_GUMBEL, by which the noise comes in another type.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import torch_kernels
from .changes import Change, Plan
from .inspection import need, parameters
from .log import Inert

KERNELS = ("rejection_greedy_sample_kernel", "rejection_random_sample_kernel", "sample_recovered_tokens_kernel")


class Launcher:
    """``kernel[grid](…)`` as Triton has it."""

    def __init__(self, function: Any) -> None:
        self.func = function

    def __getitem__(self, grid: Any) -> Any:
        return self.func


def plan(module: Any, settings: dict[str, Any]) -> Plan:
    sampler = importlib.import_module("vllm.v1.sample.rejection_sampler")
    stand_ins = importlib.import_module("vllm.utils.cpu_triton_utils")
    replaced = []
    for kernel in KERNELS:
        wanted = parameters(need(sampler, kernel))
        known = parameters(need(stand_ins, f"_{kernel}_impl"))
        unknown = [name for name in wanted if name not in known]
        if not unknown:
            continue
        function = getattr(torch_kernels, kernel)
        if wanted != parameters(function):
            raise Inert(f"{kernel} is called with arguments that are not known here either: {', '.join(unknown)}")
        replaced.append((kernel, function, unknown))
    if not replaced:
        raise Inert("every stand-in takes what it is called with")
    changes = [
        Change(stand_ins, name, value)
        for kernel, function, _ in replaced
        for name, value in ((f"_{kernel}_impl", function), (kernel, Launcher(function)))
    ]
    return changes, "done in PyTorch: " + ", ".join(f"{kernel} (takes {', '.join(new)})" for kernel, _, new in replaced)
