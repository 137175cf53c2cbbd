"""The release's own proposer and block table, before and after the shim: order of layers, and slots.

    PYTHONPATH=SHIM:ENGINE ENGINE_PYTHON shim_classes.py

No engine is started and no kernel is run, so the Python files of a release are enough. Prints one JSON object:
for "released" and "repaired" each, and for each proposer class,

    unit      blocks by which the proposer computes slots
    right     whether these are the addresses that the cache manager means
    sorted    whether the draft's layers are taken in order

and besides "other_unit_right": whether slots in the other unit would be right, and "lines", what the shim said.
A manager block has 32 tokens and a kernel block 16.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
from types import SimpleNamespace
from typing import Any

MANAGER, KERNEL = 32, 16
BLOCKS = [7, 3]  # the manager's blocks of a sequence of 64 tokens
NAMES = [f"draft.layers.{number}.attn" for number in range(20)]
DEVICE = "cpu"


def module(name: str) -> Any:
    """vLLM is imported by name: mypy runs where there is none."""
    return importlib.import_module(name)


def block_table() -> Any:
    """A table that holds the blocks, as the release's class keeps them."""
    cls = module("vllm.v1.worker.block_table").BlockTable
    known = {
        "block_size": MANAGER,
        "kernel_block_size": KERNEL,
        "max_num_reqs": 2,
        "max_num_blocks_per_req": 8,
        "max_num_batched_tokens": 64,
        "pin_memory": False,
        "device": DEVICE,
        "cp_kv_cache_interleave_size": 1,
    }
    table = cls(**{name: known[name] for name in inspect.signature(cls).parameters if name in known})
    table.add_row(BLOCKS, 0)
    return table


def right(unit: int, table: Any) -> bool:
    """Whether the slots of all positions are where the manager's blocks lie."""
    row = [int(block) for block in table.get_numpy_array()[0]]
    positions = range(MANAGER * len(BLOCKS))
    slots = [row[p // unit] * unit + p % unit for p in positions]
    return slots == [BLOCKS[p // MANAGER] * MANAGER + p % MANAGER for p in positions]


def layers() -> dict[str, Any]:
    """A layer for each name, with a backend of its own, so that the order of groups is the order of layers."""
    base = module("vllm.model_executor.layers.attention_layer_base").AttentionLayerBase

    class Builder:
        requires_block_table_width = False

        def __init__(self, kv_cache_spec: Any, *_: Any) -> None:
            self.kv_cache_spec = kv_cache_spec

        def set_kernel_block_size(self, size: int) -> None:
            pass

    def layer(name: str) -> Any:
        backend = SimpleNamespace(
            full_cls_name=lambda: ("test", name),
            get_builder_cls=lambda: Builder,
            get_supported_kernel_block_sizes=lambda spec: [KERNEL],
        )
        methods = {"get_attn_backend": lambda self: backend, "get_kv_cache_spec": lambda self, config: None}
        return type("Layer", (base,), methods)()

    return {name: layer(name) for name in NAMES}


def measure(cls: type) -> dict[str, Any]:
    """Have a proposer find its groups, as the model runner does, and look at what it has then."""
    torch: Any = module("torch")
    spec = module("vllm.v1.kv_cache_interface").FullAttentionSpec(
        block_size=MANAGER, num_kv_heads=1, head_size=32, dtype=torch.bfloat16
    )
    table = block_table()
    proposer: Any = object.__new__(cls)
    proposer.vllm_config = SimpleNamespace(
        compilation_config=SimpleNamespace(static_forward_context=layers()),
        model_config=SimpleNamespace(max_model_len=64),
        scheduler_config=SimpleNamespace(max_num_seqs=2),
        parallel_config=SimpleNamespace(decode_context_parallel_size=1, prefill_context_parallel_size=1),
    )
    proposer.device = DEVICE
    proposer.runner = SimpleNamespace(input_batch=SimpleNamespace(block_table=[table]))
    config = SimpleNamespace(kv_cache_groups=[SimpleNamespace(layer_names=NAMES, kv_cache_spec=spec)])
    if hasattr(cls, "initialize_attn_backend"):
        proposer._draft_attn_layer_names = set(NAMES)
        proposer.initialize_attn_backend(config, [KERNEL])
        groups = proposer.draft_attn_groups
        order = [group.layer_names[0] for group in groups]
        unit = getattr(proposer, "block_size", groups[0].kv_cache_spec.block_size)
    else:
        # what __init__ and load_model of this form do, then the runner's last step
        proposer.block_size = MANAGER
        proposer.attn_layer_names = list(set(NAMES))
        proposer.validate_same_kv_cache_group(config)
        order, unit = list(proposer.attn_layer_names), proposer.block_size
    return {"unit": unit, "right": right(unit, table), "sorted": order == sorted(NAMES)}


def classes() -> list[type]:
    """The general proposer, and the one whose layers lie in several groups."""
    found = [module("vllm.v1.spec_decode.eagle").EagleProposer]
    with contextlib.suppress(ModuleNotFoundError):
        found.append(module("vllm.v1.spec_decode.gemma4").Gemma4Proposer)
    return found


def main() -> None:
    """Measure, activate, measure again."""
    cpu = module("torch._C")._cpu
    if not hasattr(cpu, "_is_avx512_supported"):  # a release for an older torch asks for it when it is imported
        cpu._is_avx512_supported = lambda: False
    released = {cls.__name__: measure(cls) for cls in classes()}
    module("specfix_shim").activate()
    repaired = {cls.__name__: measure(cls) for cls in classes()}
    unit = repaired["EagleProposer"]["unit"]
    other = right(MANAGER + KERNEL - unit, block_table())
    lines = module("specfix_shim.log").said
    told = {"released": released, "repaired": repaired, "other_unit_right": other, "lines": lines}
    print(json.dumps(told), flush=True)
    os._exit(0)  # an engine that was never started need not be torn down


if __name__ == "__main__":
    main()
