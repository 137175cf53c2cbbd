"""The generator: a field or a tensor, times an operator, over a base pair, drawn with a committed seed.

A mutation is written out by its name: ``gqa/draft:rope_theta=off-by-one 10001.0``. The candidates of each field come
in an order that the seed gives each by its name, and the first of them are drawn: a new field, or a larger budget, adds
mutations and changes none.
"""

from __future__ import annotations

import copy
import json
import random
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.engine.pairs import HIDDEN, Tensor, ones, zeros

from .bases import BASES, FLOAT16, FLOAT32, Case, Floats, Tensors, converted, integers
from .fields import FIELDS, Field

SEED = 20260801
WEIGHT = {"absurd": 0.1, "null": 0.3, "missing": 2.0, "off-by-one": 2.0}  # of an operator, where mutations are drawn
MISSING = object()
FRESH_SHARE = 12  # one in so many fresh mutations is of tensors

Change = Callable[[Case], None]


@dataclass(frozen=True)
class Mutation:
    """One change to one base pair."""

    base: str
    place: str
    """The field, or the side whose tensors change."""
    operator: str
    change: Change
    value: str = ""

    @property
    def name(self) -> str:
        return f"{self.base}/{self.place}={self.operator} {self.value}".rstrip()

    def case(self) -> Case:
        """The mutated pair."""
        case = base(self.base)
        self.change(case)
        return case


def base(name: str) -> Case:
    """A base pair of one's own to change. Tensors are never changed in place."""
    case = made(name)
    configs = copy.deepcopy((case.target, case.draft, case.serve, case.speculative, case.generation))
    target, draft, serve, speculative, generation = configs
    return Case(target, draft, dict(case.target_weights), dict(case.draft_weights), serve, speculative, generation)


@cache
def made(name: str) -> Case:
    return BASES[name]()


def drawn() -> dict[str, Mutation]:
    """The committed mutations, by name."""
    found: dict[str, Mutation] = {}
    for one in FIELDS:
        found |= {mutation.name: mutation for mutation in shuffled(of_field(one))[: one.budget]}
    for place, changes in WEIGHTS.items():
        chosen = shuffled(weight_changes(place))[: len(changes) // 2]
        found |= {mutation.name: mutation for mutation in chosen}
    return found


def fresh(count: int, seed: int) -> dict[str, Mutation]:
    """Other mutations, of the same fields in the same proportions."""
    numbers = random.Random(seed)
    known, found = drawn(), dict[str, Mutation]()
    while len(found) < count:
        if numbers.randrange(FRESH_SHARE):
            (one,) = numbers.choices(FIELDS, [one.budget for one in FIELDS])
            candidates = list(of_field(one))
        else:
            place = numbers.choice(list(WEIGHTS))
            candidates = weight_changes(place)
        unseen = [mutation for mutation in candidates if mutation.name not in known]
        if unseen:
            mutation = numbers.choice(unseen)
            found[mutation.name] = mutation
    return found


def shuffled(candidates: Iterable[Mutation]) -> list[Mutation]:
    """In a random order, in which the absurd values, nearly all of which are refused at start, come late.

    A candidate's place hangs on its own name alone.
    """

    def key(mutation: Mutation) -> float:  # of a weighted draw without replacement
        return float(random.Random(f"{SEED} {mutation.name}").random() ** (1 / WEIGHT.get(mutation.operator, 1.0)))

    return sorted(candidates, key=key, reverse=True)


def of_field(one: Field) -> Iterator[Mutation]:
    """Every mutation of a field that changes anything."""
    for name in BASES:
        above = parent(made(name), one)
        if above is None:
            continue
        before = above.get(one.path[-1], MISSING)
        for operator, value in values(one, before):
            if value is before or (value == before and type(value) is type(before)):
                continue
            shown = "" if value is MISSING else json.dumps(value)
            yield Mutation(name, str(one), operator, setting(one, value), shown)


def values(one: Field, before: Any) -> Iterator[tuple[str, Any]]:
    """(operator, value) of a field with this value."""
    if isinstance(before, bool):
        yield "off-by-one", not before
    elif isinstance(before, (int, float)):
        yield "off-by-one", before + 1
        yield "off-by-one", before - 1
    elif isinstance(before, list) and before and isinstance(before[-1], int):
        yield "off-by-one", [*before[:-1], before[-1] + 1]
        yield "off-by-one", before[:-1]
        yield "off-by-one", [*before, before[-1]]
    for value in one.others:
        yield "another-model's", value
    if before is not MISSING:
        yield "missing", MISSING
    if one.side != "serve":  # no flag is null
        yield "null", None
    for value in one.absurd:
        yield "absurd", value


def parent(case: Case, one: Field) -> dict[str, Any] | None:
    """The object that holds the field, or would; None where that is not there itself."""
    if one.side == "generation":
        case.generation = {} if case.generation is None else case.generation
    level: Any = getattr(case, one.side)
    for key in one.path[:-1]:
        level = level.get(key)
        if not isinstance(level, dict):
            return None
    found: dict[str, Any] = level
    return found


def setting(one: Field, value: Any) -> Change:
    def change(case: Case) -> None:
        above = parent(case, one)
        assert above is not None
        if value is MISSING:
            del above[one.path[-1]]
        else:
            above[one.path[-1]] = copy.deepcopy(value)

    return change


# What happens to the tensors of a side. A change that finds nothing to do leaves them as they are.


def drop(*endings: str) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        for name in [name for name in tensors if name.endswith(endings)]:
            del tensors[name]

    return change


def add(name: str, tensor: Tensor) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.update({name: tensor})


def beside(ending: str, suffix: str, size: int) -> Callable[[Tensors], None]:
    """Add a vector beside each tensor of this name: a bias, a norm, a scale."""

    def change(tensors: Tensors) -> None:
        for name in [name for name in tensors if name.endswith(ending)]:
            tensors[name.removesuffix(ending) + suffix] = zeros(size)

    return change


def resize(ending: str, rows: int = 0, columns: int = 0) -> Callable[[Tensors], None]:
    """More rows or columns, or fewer, of zeros in tensors of this name."""

    def change(tensors: Tensors) -> None:
        for name, (dtype, shape, data) in list(tensors.items()):
            if name.endswith(ending) and len(shape) == 2 and dtype == "BF16":
                width = 2 * shape[1]
                lines = [data[start : start + width] for start in range(0, len(data), width)]
                lines = [line[: width + 2 * columns] + bytes(max(0, 2 * columns)) for line in lines]
                width += 2 * columns
                lines = lines[: shape[0] + rows] + [bytes(width)] * max(0, rows)
                tensors[name] = dtype, (len(lines), width // 2), b"".join(lines)

    return change


def rename(old: str, new: str) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        for name in [name for name in tensors if old in name]:
            tensors[name.replace(old, new)] = tensors.pop(name)

    return change


def store(floats: Floats, ending: str = "") -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        for name, tensor in list(tensors.items()):
            if name.endswith(ending):
                tensors[name] = converted(tensor, floats)

    return change


def shift_d2t(by: int = 0, keep: int | None = None) -> Callable[[Tensors], None]:
    """Another map from the draft's vocabulary to the target's."""

    def change(tensors: Tensors) -> None:
        if "d2t" in tensors:
            _, (count,), data = tensors["d2t"]
            offsets = [offset + by for offset in struct.unpack(f"<{count}q", data)]
            tensors["d2t"] = integers(offsets[:keep])

    return change


WEIGHTS: dict[str, dict[str, Callable[[Tensors], None]]] = {
    "draft-weights": {
        "no-d2t": drop("d2t"),
        "no-t2d": drop("t2d"),
        "no-head": drop("lm_head.weight"),
        "no-fc": drop("fc.weight"),
        "no-norm": drop("norm.weight"),
        "no-hidden-norm": drop("hidden_norm.weight"),
        "no-mlp": drop("gate_proj.weight", "up_proj.weight"),
        "no-q": drop("q_proj.weight"),
        "no-layer": drop("layernorm.weight"),
        "d2t-of-zeros": add("d2t", integers([0] * 512)),
        "d2t-shifted": shift_d2t(1),
        "d2t-beyond": shift_d2t(300),
        "d2t-short": shift_d2t(keep=100),
        "wide-fc": resize("fc.weight", columns=HIDDEN),
        "narrow-fc": resize("fc.weight", columns=-HIDDEN),
        "long-fc": resize("fc.weight", rows=HIDDEN),
        "fc-bias": beside("fc.weight", "fc.bias", HIDDEN),
        "q-bias": beside("q_proj.weight", "q_proj.bias", HIDDEN),
        "o-bias": beside("o_proj.weight", "o_proj.bias", HIDDEN),
        "more-q": resize("q_proj.weight", rows=32),
        "fewer-k": resize("k_proj.weight", rows=-32),
        "narrow-q": resize("q_proj.weight", columns=-HIDDEN),
        "long-head": resize("lm_head.weight", rows=64),
        "short-head": resize("lm_head.weight", rows=-64),
        "short-embedding": add("embed_tokens.weight", zeros(500, HIDDEN)),
        "narrow-embedding": add("embed_tokens.weight", zeros(512, HIDDEN // 2)),
        "float16": store(FLOAT16),
        "float32": store(FLOAT32),
        "float32-head": store(FLOAT32, "lm_head.weight"),
        "layers-0": rename("midlayer.", "layers.0."),
        "layers-7": rename("midlayer.", "layers.7."),
        "model-prefix": rename("midlayer.", "model.layers.0."),
        "another-layer": add("layers.1.mlp.up_proj.weight", zeros(HIDDEN, HIDDEN)),
        "unknown-tensor": add("gate_to_nowhere.weight", zeros(HIDDEN, HIDDEN)),
        "fc-norm": add("fc_norm.0.weight", ones(HIDDEN)),
        "input-norm": add("input_norm.weight", ones(3 * HIDDEN)),
        "scale": beside("q_proj.weight", "q_proj.weight_scale", HIDDEN),
        "mask-hidden": add("mask_hidden", zeros(1, 3 * HIDDEN)),
    },
    "target-weights": {
        "no-head": drop("lm_head.weight"),
        "no-layer": drop("layers.7.self_attn.q_proj.weight"),
        "no-norm": drop("model.norm.weight"),
        "long-head": resize("lm_head.weight", rows=64),
        "long-embedding": resize("embed_tokens.weight", rows=64),
        "float16": store(FLOAT16),
        "float32": store(FLOAT32),
        "q-bias": beside("q_proj.weight", "q_proj.bias", HIDDEN),
        "another-layer": add("model.layers.8.mlp.up_proj.weight", zeros(HIDDEN, HIDDEN)),
        "mtp-layer": add("mtp.fc.weight", zeros(HIDDEN, 2 * HIDDEN)),
        "unknown-tensor": add("model.gate_to_nowhere.weight", zeros(HIDDEN, HIDDEN)),
        "scale": beside("q_proj.weight", "q_proj.weight_scale", HIDDEN),
    },
}


@cache
def weight_changes(place: str) -> list[Mutation]:
    """Every such mutation that changes anything."""
    side = place.replace("-", "_")
    found = []
    for name in BASES:
        for operator, change in WEIGHTS[place].items():
            before: Tensors = getattr(made(name), side)
            after = dict(before)
            change(after)
            if after != before:
                found.append(Mutation(name, place, operator, changing(side, change)))
    return found


def changing(side: str, change: Callable[[Tensors], None]) -> Change:
    return lambda case: change(getattr(case, side))
