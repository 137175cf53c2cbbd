"""The block size by which the proposer turns positions into cache slots, in the unit of the block table that it reads.

A block table may hold kernel blocks, several to a block of the cache manager. Two forms of proposer count in manager
blocks all the same: one takes ``cache_config.block_size``, one the spec of its first attention group. Where the table
holds manager blocks, or the proposer asks the metadata builder or the list of kernel sizes, there is nothing to do.
"""

from __future__ import annotations

import importlib
import inspect
import logging
from typing import Any

from .inspection import assignments, need, own_classes, text, tree, wrap
from .log import Inert, say

PATCH = "slot_block_size"
GROUP = "self.draft_attn_groups[0].kv_cache_spec.block_size"


def apply(module: Any, settings: dict[str, Any]) -> str:
    table = need(importlib.import_module("vllm.v1.worker.block_table"), "BlockTable")
    if "kernel_block_size" not in inspect.signature(table.__init__).parameters:
        raise Inert("the block table holds the cache manager's blocks")
    for cls in own_classes(need(module, "EagleProposer")):
        taken = {(text(target), text(value)) for target, value in assignments(tree(cls))}
        if ("self.block_size", "vllm_config.cache_config.block_size") in taken:
            need(cls, "validate_same_kv_cache_group")
            wrap(cls, "validate_same_kv_cache_group", _after_tables)
            return f"{cls.__name__} will count in the unit of its block table"
        if ("block_size", GROUP) in taken:
            need(cls, "initialize_attn_backend")
            wrap(cls, "initialize_attn_backend", _after_groups)
            return f"{cls.__name__} will count in the unit of its metadata builder"
    raise Inert("the proposer already counts in the unit of its block table")


def _after_tables(original: Any, self: Any, kv_cache_config: Any) -> Any:
    """The last step of making the cache: the block tables have been made anew by now."""
    result = original(self, kv_cache_config)
    try:
        layer = self.attn_layer_names[0]
        group = next(i for i, each in enumerate(kv_cache_config.kv_cache_groups) if layer in each.layer_names)
        unit = self.runner.input_batch.block_table[group].block_size
        _say_change(self.block_size, unit)
        self.block_size = unit
    except Exception as error:
        say(PATCH, f"left as it was: {type(error).__name__}: {error}", logging.WARNING)
    return result


def _after_groups(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """The group's builders were made with the kernel block size, like the table; its own spec was not."""
    result = original(self, *args, **kwargs)
    try:
        for group in self.draft_attn_groups:
            spec = group.get_metadata_builder().kv_cache_spec
            _say_change(group.kv_cache_spec.block_size, spec.block_size)
            group.kv_cache_spec = spec
    except Exception as error:
        say(PATCH, f"left as it was: {type(error).__name__}: {error}", logging.WARNING)
    return result


def _say_change(before: int, after: int) -> None:
    if before != after:
        say(PATCH, f"the draft's slots are computed with blocks of {after}, no longer of {before}")
