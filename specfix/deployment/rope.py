"""Rotary position embedding, whatever form a config states it in.

The result is what vLLM makes of it (``patch_rope_parameters`` in vllm/transformers_utils/config.py, and
``standardize_rope_params`` of Transformers, which it calls).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from specfix.deployment.config import Config, escape
from specfix.errors import MissingFact
from specfix.record import record

# rope_type as old checkpoints write it, and as the engine calls it
RENAMED = {"su": "longrope", "mrope": "default", "telechat3-yarn": "yarn"}
# types for which an original_max_position_embeddings outside the block counts more than the one in it (Phi-3)
SCALED_FROM_ORIGINAL = frozenset({"llama3", "yarn", "longrope"})


# theta of the sliding layers where it stands apart (Gemma 3, MiMo-V2); scaling is for the others only
LOCAL_THETA = ("rope_local_base_freq", "swa_rope_theta")


@record(frozen=True)
class Rope:
    """One rotary embedding of a model (several only where they differ per layer type).

    ``rope_type`` is ``default`` where a config names none; ``theta`` is None where it states none, or one per
    layer; ``factor`` and ``original_max_position_embeddings`` are None where absent or null. ``parameters``
    is the block with the renamed type, and with what the config states beside it. ``pointer`` is where the
    block stands ("" where there is no block at all); ``layer_type`` names the nested block it came from. A
    DeepSeek model's yarn is ``yarn`` here, as in its config: only the model's class makes it
    ``deepseek_yarn``.
    """

    rope_type: str
    theta: float | None
    factor: float | None
    original_max_position_embeddings: int | None
    parameters: Mapping[str, Any]
    pointer: str = ""
    layer_type: str | None = None


def ropes(config: Config) -> tuple[Rope, ...]:
    """All rotary embeddings that ``config`` states; one of type ``default`` where it states none."""
    pointer, block = rope_block(config)
    nested = {key: inner for key, inner in block.items() if isinstance(inner, dict)}
    if nested:  # what stands beside nested blocks is dropped
        return tuple(make_rope(config, inner, f"{pointer}/{escape(key)}", key) for key, inner in nested.items())
    local = config.stated(*LOCAL_THETA)
    if local is None:
        return (make_rope(config, block, pointer),)
    sliding = {"rope_type": "default", "rope_theta": local[1]}
    return (
        make_rope(config, block, pointer, "full_attention"),
        make_rope(config, sliding, local[0], "sliding_attention"),
    )


def rope_block(config: Config) -> tuple[str, Mapping[str, Any]]:
    """(pointer, block) of the innermost level that states one. An empty block counts as none, and the older
    ``rope_scaling`` counts more than ``rope_parameters`` beside it."""
    for pointer, level in config.levels:
        for key in ("rope_scaling", "rope_parameters"):
            if level.get(key):
                return f"{pointer}/{key}", level[key]
    # A class's own block matters for its type. Releases of Transformers that write the plain type in different ways
    # differ in this key and in nothing that a table's size hangs on, so that where they do it counts as none.
    with suppress(MissingFact):
        for key in ("rope_scaling", "rope_parameters"):
            found = config.find(key)
            if found and isinstance(found[1], Mapping):
                return "", found[1]
    return "", {}


def make_rope(config: Config, block: Mapping[str, Any], pointer: str, layer_type: str | None = None) -> Rope:
    """The embedding that ``block`` states, with what the config states beside it."""
    parameters = {key: value for key, value in block.items() if value is not None}
    stated = parameters.get("rope_type", parameters.get("type", "default"))
    rope_type = parameters["rope_type"] = RENAMED.get(stated, stated)
    for key, names in (
        ("rope_theta", ("rope_theta", "rotary_emb_base")),
        ("partial_rotary_factor", ("partial_rotary_factor", "rotary_pct", "rotary_emb_fraction")),
    ):
        stated_beside = config.stated(*names)
        if stated_beside is not None:
            parameters.setdefault(key, stated_beside[1])
    beside = config.stated("original_max_position_embeddings")
    original = beside[1] if beside else None
    if original is not None and rope_type in SCALED_FROM_ORIGINAL:
        parameters["original_max_position_embeddings"] = original
    factor = parameters.get("factor")
    if stated == "telechat3-yarn" and factor:
        parameters["attention_factor"] = 0.07 * math.log(factor) + 1.0
    theta = parameters.get("rope_theta")
    original = parameters.get("original_max_position_embeddings")
    return Rope(
        rope_type,
        None if theta is None or isinstance(theta, list) else float(theta),
        None if factor is None else float(factor),
        None if original is None else int(original),
        parameters,
        pointer,
        layer_type,
    )
