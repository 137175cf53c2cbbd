"""Tiny pairs of a target and an EAGLE3 draft whose right behaviour is known exactly.

The target maps every token to the next id of one long cycle: its layers are all zero and its head is a
permuted embedding. The draft does the same, but it reads the current token through attention to its own
position. Query and key are one constant vector, so a key at distance n scores sum_f A * cos(n * theta_f),
which is greatest at n = 0 for as long as the rotary table is right. Hence every draft token is accepted,
at every length, and a wrong row of the table, a skipped draft or a wrong block address shows as lost
acceptance and not as noise. What the auxiliary states hold does not matter (`fc` is zero); how many of
them arrive does.

The weights are written without torch, which the interpreter that runs the tests need not have.
"""

from __future__ import annotations

import functools
import json
import math
import os
import random
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

HIDDEN, INTERMEDIATE, HEADS, VOCAB = 128, 128, 4, 512
HEAD_DIM = HIDDEN // HEADS  # 32: the CPU attention has no kernel for 16
SPECIAL = 3  # ids below this one are no part of the cycle
AMPLITUDE = 45.0  # of the attention score; enough for the softmax to see one key only
CONSTANT = 3.0  # component 0 of every embedding of the cycle
NORM = 11.0  # of the rest of an embedding, about sqrt(HIDDEN), so that RMSNorm changes little

Matrix = list[list[float]]
Tensor = tuple[str, tuple[int, ...], bytes]  # dtype as safetensors calls it, shape, and data in row-major order


# what both configs of a pair say
COMMON = {
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "head_dim": HEAD_DIM,
    "vocab_size": VOCAB,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@dataclass(frozen=True)
class Pair:
    """What may differ between two pairs: what their config.json files say, and how deep the target is."""

    draft_positions: int = 1024
    """max_position_embeddings of the draft: rows of its rotary table."""
    aux_ids: tuple[int, ...] | None = None
    """eagle_aux_hidden_state_layer_ids in the draft's config.json; None leaves the key out."""
    target_layers: int = 8
    """With 8 the ids that vLLM takes by default are distinct (2, 4, 5); with 6 one repeats (2, 3, 3)."""
    target_positions: int = 1024
    """max_position_embeddings of the target."""


@dataclass(frozen=True)
class Tokens:
    """What the tokens are to a target, and to its draft. The layers between add nothing."""

    embedding: Matrix
    target_head: Matrix
    draft_head: Matrix
    constant: float
    """Component 0 of every embedding: what drives the query and the key of the draft."""


@dataclass(frozen=True)
class Folders:
    """A pair on disk."""

    target: Path
    draft: Path


def write_pair(pair: Pair, folder: Path, weights: Path, tokens: Callable[[], Tokens] | None = None) -> Folders:
    """Write the pair into `folder`. Weights are made once in `weights` (same file system) and then linked.

    A folder of weights is for one sort of `tokens`: those of the cycle, if no others are given.
    """
    tokens = functools.cache(tokens or cycle)
    target = {
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": pair.target_layers,
        "max_position_embeddings": pair.target_positions,
    }
    draft: dict[str, object] = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "num_hidden_layers": 1,
        "max_position_embeddings": pair.draft_positions,
        "draft_vocab_size": VOCAB,
        # with a zero hidden_norm: the hidden state of the step before adds nothing
        "norm_before_residual": True,
    }
    if pair.aux_ids is not None:
        draft["eagle_aux_hidden_state_layer_ids"] = list(pair.aux_ids)

    target_weights = weights / f"target-{pair.target_layers}.safetensors"
    draft_weights = weights / "draft.safetensors"
    if not target_weights.exists():
        save(target_tensors(tokens(), pair.target_layers), target_weights)
    if not draft_weights.exists():
        save(draft_tensors(tokens()), draft_weights)
    folders = Folders(folder / "target", folder / "draft")
    _write_model(folders.target, target | COMMON, target_weights)
    _write_model(folders.draft, draft | COMMON, draft_weights)
    return folders


def _write_model(folder: Path, config: Mapping[str, object], weights: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    os.link(weights, folder / "model.safetensors")


def cycle() -> Tokens:
    """Random directions for the tokens, and the head that answers each with the token after it."""
    numbers = random.Random(0)
    directions = []
    for _ in range(VOCAB):
        row = [0.0, *(numbers.gauss(0, 1) for _ in range(HIDDEN - 1))]
        scale = NORM / math.sqrt(sum(x * x for x in row))
        directions.append([x * scale for x in row])
    head = [*directions[:SPECIAL], directions[-1], *directions[SPECIAL:-1]]
    return Tokens([[CONSTANT, *row[1:]] for row in directions], head, head, CONSTANT)


def target_tensors(tokens: Tokens, layers: int) -> dict[str, Tensor]:
    tensors = {
        "model.embed_tokens.weight": dense(tokens.embedding),
        "lm_head.weight": dense(tokens.target_head),
        "model.norm.weight": ones(HIDDEN),
    }
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        tensors |= {f"{prefix}self_attn.{name}_proj.weight": zeros(HIDDEN, HIDDEN) for name in "qkvo"}
        tensors |= mlp(prefix)
        tensors |= {f"{prefix}{name}_layernorm.weight": ones(HIDDEN) for name in ("input", "post_attention")}
    return tensors


def draft_tensors(tokens: Tokens) -> dict[str, Tensor]:
    width = 2 * HIDDEN  # the draft's attention reads the token's embedding beside a hidden state
    weight = math.sqrt(AMPLITUDE * math.sqrt(HEAD_DIM) / 2) / tokens.constant
    # one component of each rotary pair, so that the score is a plain sum of cosines
    half = HEAD_DIM // 2
    score = matrix(HIDDEN, width, lambda row, column: weight * (column == 0 and row % HEAD_DIM < half))
    value = matrix(HIDDEN, width, lambda row, column: row == column != 0)
    identity = matrix(HIDDEN, HIDDEN, lambda row, column: row == column)
    prefix = "midlayer."
    return {
        "fc.weight": zeros(HIDDEN, 3 * HIDDEN),
        "lm_head.weight": dense(tokens.draft_head),
        "norm.weight": ones(HIDDEN),
        f"{prefix}self_attn.q_proj.weight": dense(score),
        f"{prefix}self_attn.k_proj.weight": dense(score),
        f"{prefix}self_attn.v_proj.weight": dense(value),
        f"{prefix}self_attn.o_proj.weight": dense(identity),
        f"{prefix}input_layernorm.weight": ones(HIDDEN),
        f"{prefix}hidden_norm.weight": zeros(HIDDEN),
        f"{prefix}post_attention_layernorm.weight": ones(HIDDEN),
        **mlp(prefix),
    }


def mlp(prefix: str) -> dict[str, Tensor]:
    return {
        f"{prefix}mlp.gate_proj.weight": zeros(INTERMEDIATE, HIDDEN),
        f"{prefix}mlp.up_proj.weight": zeros(INTERMEDIATE, HIDDEN),
        f"{prefix}mlp.down_proj.weight": zeros(HIDDEN, INTERMEDIATE),
    }


def matrix(rows: int, columns: int, at: Callable[[int, int], float]) -> Matrix:
    return [[float(at(row, column)) for column in range(columns)] for row in range(rows)]


def zeros(*shape: int) -> Tensor:
    return "BF16", shape, bytes(2 * math.prod(shape))


def ones(size: int) -> Tensor:
    return "BF16", (size,), _bfloat16([1.0] * size)


def dense(rows: Matrix) -> Tensor:
    return "BF16", (len(rows), len(rows[0])), b"".join(map(_bfloat16, rows))


def _bfloat16(values: Iterable[float]) -> bytes:
    """The upper halves of the float32 patterns, rounded to nearest."""
    values = list(values)
    patterns = struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))
    return struct.pack(f"<{len(values)}H", *((pattern + 0x8000) >> 16 for pattern in patterns))


def save(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write a safetensors file: the length of a JSON header, the header, the data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape, data) in tensors.items():
        start, end = end, end + len(data)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    with unfinished.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        file.writelines(data for _, _, data in tensors.values())
    unfinished.replace(path)
