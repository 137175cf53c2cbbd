"""The block size by which the proposer turns positions into cache slots, in the unit of the block table that it reads.

A block table may hold kernel blocks, several to a block of the cache manager. Two forms of proposer count in manager
blocks all the same: one takes ``cache_config.block_size``, one the spec of its first attention group. Where the table
holds manager blocks, or the proposer asks the metadata builder or the list of kernel sizes, there is nothing to do.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from .changes import Change, Plan, after, make
from .inspection import assignments, need, own_classes, text, tree
from .log import Inert, say

PATCH = "slot_block_size"
GROUP = "self.draft_attn_groups[0].kv_cache_spec.block_size"


def plan(module: Any, settings: dict[str, Any]) -> Plan:
    table = need(importlib.import_module("vllm.v1.worker.block_table"), "BlockTable")
    if "kernel_block_size" not in inspect.signature(table.__init__).parameters:
        raise Inert("the block table holds the cache manager's blocks")
    for cls in own_classes(need(module, "EagleProposer")):
        taken = {(text(target), text(value)) for target, value in assignments(tree(cls))}
        if ("self.block_size", "vllm_config.cache_config.block_size") in taken:
            change = after(cls, "validate_same_kv_cache_group", PATCH, _after_tables)
            return [change], f"{cls.__name__} will count in the unit of its block table"
        if ("block_size", GROUP) in taken:
            change = after(cls, "initialize_attn_backend", PATCH, _after_groups)
            return [change], f"{cls.__name__} will count in the unit of its metadata builder"
    raise Inert("the proposer already counts in the unit of its block table")


def _after_tables(self: Any, kv_cache_config: Any, *_: Any, **__: Any) -> None:
    """The last step of making the cache: the block tables have been made anew by now."""
    layer = self.attn_layer_names[0]
    group = next(i for i, each in enumerate(kv_cache_config.kv_cache_groups) if layer in each.layer_names)
    unit, released = self.runner.input_batch.block_table[group].block_size, self.block_size
    self.block_size = unit
    _say_change(released, unit)


def _after_groups(self: Any, *_: Any, **__: Any) -> None:
    """The groups' builders were made with the kernel block size, like the table; their own specs were not."""
    changes = [
        Change(group, "kv_cache_spec", group.get_metadata_builder().kv_cache_spec) for group in self.draft_attn_groups
    ]
    sizes = [(change.owner.kv_cache_spec.block_size, change.value.block_size) for change in changes]
    make(changes)
    for released, unit in sizes:
        _say_change(released, unit)


def _say_change(released: int, unit: int) -> None:
    if released != unit:
        say(PATCH, f"the draft's slots are computed with blocks of {unit}, no longer of {released}")
