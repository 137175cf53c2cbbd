"""Base pairs in which every draft token is accepted, at every length, by construction.

All are variants of the pair in tests/engine/pairs.py: the target answers each token with the next one of a cycle, and
so does its draft. What a mutation costs is therefore the mutation's own doing.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from tests.engine.pairs import (
    COMMON,
    CONSTANT,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    NORM,
    SPECIAL,
    VOCAB,
    Tensor,
    Tokens,
    cycle,
    dense,
    draft_tensors,
    matrix,
    mlp,
    ones,
    target_tensors,
    zeros,
)

LAYERS = 8
POSITIONS = 1024

Config = dict[str, Any]
Tensors = dict[str, Tensor]


@dataclass
class Case:
    """A pair and how it is served, as data: what the engine gets, and what the check gets."""

    target: Config
    draft: Config
    target_weights: Tensors
    draft_weights: Tensors
    serve: Config = field(default_factory=dict)
    """Flags of the engine."""
    speculative: Config = field(default_factory=dict)
    """The speculative config, but for the draft's place."""
    generation: Config | None = None
    """generation_config.json of the target; None is no such file."""
    env: dict[str, str] = field(default_factory=dict)


def plain() -> Case:
    """One draft layer, as many key heads as query heads, one vocabulary, plain RoPE, no aux ids."""
    common = {**COMMON, "max_position_embeddings": POSITIONS}
    return Case(
        target={"architectures": ["LlamaForCausalLM"], "num_hidden_layers": LAYERS, **common},
        draft={
            "architectures": ["LlamaForCausalLMEagle3"],
            "num_hidden_layers": 1,
            "draft_vocab_size": VOCAB,
            "norm_before_residual": True,
            **common,
        },
        target_weights=dict(of_cycle(LAYERS)),
        draft_weights=dict(of_cycle(None)),
        serve={
            "max_model_len": POSITIONS,
            "max_num_batched_tokens": POSITIONS,
            "max_num_seqs": 4,
            "dtype": "bfloat16",
            "enforce_eager": True,
            "enable_prefix_caching": False,
            "num_gpu_blocks_override": 128,
        },
        speculative={"method": "eagle3", "num_speculative_tokens": 3},
    )


@cache
def of_cycle(layers: int | None) -> Tensors:
    """The tensors of a target of so many layers, or of the draft."""
    return draft_tensors(cycle()) if layers is None else target_tensors(cycle(), layers)


def gqa() -> Case:
    """Two query heads to a key head, in both models."""
    case = plain()
    heads = HEADS // 2
    size = heads * HEAD_DIM
    for config in (case.target, case.draft):
        config["num_key_value_heads"] = heads
    for layer in range(LAYERS):
        for name in "kv":
            case.target_weights[f"model.layers.{layer}.self_attn.{name}_proj.weight"] = zeros(size, HIDDEN)
    prefix = "midlayer.self_attn."
    _, _, score = case.draft_weights[f"{prefix}k_proj.weight"]
    case.draft_weights |= {
        f"{prefix}k_proj.weight": ("BF16", (size, 2 * HIDDEN), score[: 2 * size * 2 * HIDDEN]),
        f"{prefix}v_proj.weight": dense(matrix(size, 2 * HIDDEN, lambda row, column: row == column != 0)),
        # what the first head of each group read is the value; half of the components tell the tokens apart
        f"{prefix}o_proj.weight": dense(
            matrix(
                HIDDEN,
                HIDDEN,
                lambda row, column: row < size and column == row // HEAD_DIM * 2 * HEAD_DIM + row % HEAD_DIM,
            )
        ),
    }
    return case


def reduced_vocabulary() -> Case:
    """The draft knows two tokens of every four, and the target says no other."""
    case = plain()
    directions = [[0.0, *row[1:]] for row in cycle().embedding]
    ids = [token for token in range(VOCAB) if token % 4 >= 2]
    head = [[0.0] * HIDDEN for _ in range(VOCAB)]
    for token in range(SPECIAL, VOCAB):
        after = next((one for one in ids if one > token), SPECIAL)
        head[after] = list(map(sum, zip(head[after], directions[token], strict=True)))
    case.target_weights["lm_head.weight"] = dense(head)
    case.draft_weights |= {
        "lm_head.weight": dense([head[token] for token in ids]),
        "d2t": integers([token - place for place, token in enumerate(ids)]),
        "t2d": ("BOOL", (VOCAB,), bytes(token in ids for token in range(VOCAB))),
    }
    case.draft["draft_vocab_size"] = len(ids)
    return case


@cache
def circles() -> tuple[Tokens, Tensors]:
    """Tokens on circles, and an MLP that adds to a token's embedding what makes it that of the next.

    An embedding is a point on many circles, and the next token's is one step further on each.
    """
    steps = random.Random(0).sample(range(1, (VOCAB - SPECIAL) // 2), (HIDDEN - 1) // 2)
    angles = [2 * math.pi * step / (VOCAB - SPECIAL) for step in steps]
    radius = NORM / math.sqrt(len(angles))
    directions = [
        [0.0, *(radius * turn(angle * (token - SPECIAL)) for angle in angles for turn in (math.cos, math.sin)), 0.0]
        for token in range(VOCAB)
    ]
    directions[:SPECIAL] = cycle().embedding[:SPECIAL]
    head = [*directions[:SPECIAL], directions[-1], *directions[SPECIAL:-1]]

    step = [[0.0] * HIDDEN for _ in range(HIDDEN)]  # the rotation by one step, minus the identity
    for number, angle in enumerate(angles):
        one = 1 + 2 * number
        two = one + 1
        step[one][one] = step[two][two] = math.cos(angle) - 1
        step[one][two], step[two][one] = -math.sin(angle), math.sin(angle)
    gate = 3.0
    rotation = {
        # an open gate: silu(x) is x where x is large
        "mlp.gate_proj.weight": dense(matrix(INTERMEDIATE, HIDDEN, lambda _, column: gate * (column == 0))),
        "mlp.up_proj.weight": dense(matrix(INTERMEDIATE, HIDDEN, lambda row, column: row == column)),
        "mlp.down_proj.weight": dense([[x / (gate * CONSTANT) for x in row] for row in step]),
    }
    return Tokens([[CONSTANT, *row[1:]] for row in directions], head, head, CONSTANT), rotation


def tied() -> Case:
    """The target's head is its embedding, so that its last layer makes the next token of each."""
    case = plain()
    tokens, rotation = circles()
    last = f"model.layers.{LAYERS - 1}."
    case.target_weights = target_tensors(tokens, LAYERS) | {last + name: tensor for name, tensor in rotation.items()}
    del case.target_weights["lm_head.weight"]
    case.target["tie_word_embeddings"] = True
    case.draft_weights = draft_tensors(tokens)
    return case


def reads_aux() -> Case:
    """A draft that knows the token from the auxiliary states alone, and makes the next of it."""
    case = plain()
    tokens, rotation = circles()
    case.target_weights = target_tensors(tokens, LAYERS)
    case.draft_weights = draft_tensors(tokens) | {
        "fc.weight": dense(matrix(HIDDEN, 3 * HIDDEN, lambda row, column: (row == column % HIDDEN) / 3)),
        "midlayer.hidden_norm.weight": ones(HIDDEN),
        "midlayer.self_attn.o_proj.weight": zeros(HIDDEN, HIDDEN),
        **{f"midlayer.{name}": tensor for name, tensor in rotation.items()},
    }
    return case


def rope(**scaling: Any) -> Callable[[], Case]:
    """The same scaling of RoPE in both models."""

    def made() -> Case:
        case = plain()
        for config in (case.target, case.draft):
            config["rope_scaling"] = dict(scaling)
        return case

    return made


def aux_ids() -> Case:
    """The draft names its aux layers, the output of the last one among them."""
    case = plain()
    case.draft["eagle_aux_hidden_state_layer_ids"] = [1, 3, LAYERS]
    return case


def four_aux_ids() -> Case:
    """Four aux layers, named in eagle_config."""
    case = plain()
    case.draft["eagle_config"] = {"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": [1, 3, 5, 6]}
    case.draft_weights["fc.weight"] = zeros(HIDDEN, 4 * HIDDEN)
    return case


def sliding_window() -> Case:
    """A target whose layers see the last 64 tokens."""
    case = plain()
    case.target |= {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 64}
    return case


def qwen3() -> Case:
    """A Qwen3 target, whose heads together are wider than its hidden state."""
    case = plain()
    heads = 2 * HEADS
    case.target |= {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "num_attention_heads": heads,
        "attention_bias": False,
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}.self_attn."
        case.target_weights |= {
            f"{prefix}q_proj.weight": zeros(heads * HEAD_DIM, HIDDEN),
            f"{prefix}o_proj.weight": zeros(HIDDEN, heads * HEAD_DIM),
            f"{prefix}q_norm.weight": ones(HEAD_DIM),
            f"{prefix}k_norm.weight": ones(HEAD_DIM),
        }
    return case


def two_layers() -> Case:
    """A second draft layer, which adds nothing."""
    case = plain()
    case.draft["num_hidden_layers"] = 2
    prefix = "layers.1."
    case.draft_weights |= {
        **{f"{prefix}self_attn.{name}_proj.weight": zeros(HIDDEN, HIDDEN) for name in "qkvo"},
        **mlp(prefix),
        **{f"{prefix}{name}.weight": ones(HIDDEN) for name in ("input_layernorm", "post_attention_layernorm")},
        f"{prefix}hidden_norm.weight": zeros(HIDDEN),
    }
    return case


def speculators() -> Case:
    """A draft in the format of the speculators library."""
    case = plain()
    layer = case.draft
    del layer["architectures"], layer["draft_vocab_size"], layer["norm_before_residual"]
    case.draft = {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.3.0",
        "draft_vocab_size": VOCAB,
        "norm_before_residual": True,
        "torch_dtype": "bfloat16",
        "transformer_layer_config": layer,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 3}],
            "verifier": {"name_or_path": "a-target", "architectures": ["LlamaForCausalLM"]},
        },
    }
    return case


def eagle() -> Case:
    """The first EAGLE: the draft's layers add nothing to the token's embedding, and it shares the target's head."""
    case = plain()
    case.speculative["method"] = "eagle"
    del case.draft["norm_before_residual"], case.draft["draft_vocab_size"]
    case.draft["architectures"] = ["EagleLlamaForCausalLM"]
    prefix = "layers.0."
    case.draft_weights = {
        "fc.weight": dense(matrix(HIDDEN, 2 * HIDDEN, lambda row, column: row == column)),
        **{f"{prefix}self_attn.{name}_proj.weight": zeros(HIDDEN, HIDDEN) for name in "qkvo"},
        **mlp(prefix),
        f"{prefix}post_attention_layernorm.weight": ones(HIDDEN),
    }
    return case


def draft_model() -> Case:
    """A smaller model of the same cycle."""
    case = plain()
    case.speculative["method"] = "draft_model"
    del case.draft["norm_before_residual"], case.draft["draft_vocab_size"]
    case.draft |= {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2}
    case.draft_weights = dict(of_cycle(2))
    return case


BASES: dict[str, Callable[[], Case]] = {
    "plain": plain,
    "gqa": gqa,
    "reduced-vocabulary": reduced_vocabulary,
    "tied": tied,
    "reads-aux": reads_aux,
    "llama3-rope": rope(
        rope_type="llama3", factor=4.0, original_max_position_embeddings=256, low_freq_factor=1.0, high_freq_factor=4.0
    ),
    "yarn": rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=256),
    "linear-rope": rope(rope_type="linear", factor=2.0),
    "aux-ids": aux_ids,
    "four-aux-ids": four_aux_ids,
    "sliding-window": sliding_window,
    "qwen3": qwen3,
    "two-layers": two_layers,
    "speculators": speculators,
    "eagle": eagle,
    "draft-model": draft_model,
}


def integers(values: list[int]) -> Tensor:
    return "I64", (len(values),), struct.pack(f"<{len(values)}q", *values)


class Floats(NamedTuple):
    """How a type of numbers is stored."""

    dtype: str
    code: str


FLOAT16 = Floats("F16", "e")
FLOAT32 = Floats("F32", "f")


def converted(tensor: Tensor, floats: Floats) -> Tensor:
    """A bfloat16 tensor in another type; any other as it is."""
    dtype, shape, data = tensor
    if dtype != "BF16":
        return tensor
    count = len(data) // 2
    upper = struct.unpack(f"<{count}H", data)
    values = struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(one << 16 for one in upper)))
    return floats.dtype, shape, struct.pack(f"<{count}{floats.code}", *values)
