"""Which batches CUDA graphs are captured for.

Sources: ``_set_cudagraph_sizes`` (vllm/config/vllm.py) and ``adjust_cudagraph_sizes_for_spec_decode``
(vllm/config/compilation.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from specfix.deployment import Hardware, Serving
from specfix.deployment.expected import is_count
from specfix.engines import Engine
from specfix.engines.facts.numbers import Captures
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.budget import Batch
from specfix.record import record


@record(frozen=True)
class Captured:
    """The largest batch, in tokens, that a graph is captured for; ``rounded`` is the largest once the sizes are made
    multiples of 1+k, as they are where whole decodes are captured. ``chosen``: the flag that chose it, None for the
    release's own choice; ``bounded``: that choice stopped at its ceiling."""

    largest: int
    rounded: int
    chosen: str | None
    bounded: bool


LISTS: Final = ("cudagraph_capture_sizes", "cuda_graph_sizes")
MOST: Final = "max_cudagraph_capture_size"
OFF: Final = ("NONE", "none", 0)


def captured(
    serving: Serving,
    hardware: Hardware,
    engine: Engine,
    batches: tuple[Batch, ...],
    draft_tokens: int,
) -> tuple[Captured, ...]:
    """For each batch that may hold, what is captured. NotApplicable where nothing is."""
    if hardware.platform == "cpu" or serving.enforce_eager:
        raise NotApplicable("no CUDA graphs are captured")
    compilation = serving.flag("compilation_config")
    given = dict(compilation) if isinstance(compilation, Mapping) else {}
    for key in ("mode", "level", "optimization_level"):
        if given.get(key, serving.flag(key) if key == "optimization_level" else None) in (0, "O0", "0"):
            raise NotApplicable("no CUDA graphs are captured")
    if given.get("cudagraph_mode") in OFF and "cudagraph_mode" in given:
        raise NotApplicable("no CUDA graphs are captured")
    facts = known(engine.numbers.captures, f"which CUDA graphs {engine} captures")
    given |= {key: serving.flag(key) for key in (*LISTS, MOST) if serving.flag(key) is not None}
    return tuple(of_batch(batch, given, facts, hardware, draft_tokens + 1) for batch in batches)


def of_batch(batch: Batch, given: Mapping[str, Any], facts: Captures, hardware: Hardware, query: int) -> Captured:
    for key in LISTS:
        listed = given.get(key)
        if isinstance(listed, list) and listed and all(map(is_count, listed)):
            if key == "cuda_graph_sizes" and len(listed) == 1:
                return with_rounding(stepped(int(listed[0]), facts.wide), query, key, False)
            sizes = tuple(int(number) for number in listed if number <= batch.tokens)
            return with_rounding(sizes, query if facts.rounded else 1, key, False)
        if listed is not None:
            raise MissingFact(f"a list of whole numbers for {key}")
    most = given.get(MOST)
    if most is not None and not is_count(most):
        raise MissingFact(f"a whole number for {MOST}")
    ceiling = facts.ceiling_100 if (hardware.compute_capability or (0, 0))[0] == 10 else facts.ceiling
    wanted = batch.seqs * 2 * (query if facts.per_seq == "2*(k+1)" else 1)
    limit = min(int(most) if most is not None else min(wanted, ceiling), batch.tokens)
    bounded = most is None and wanted >= ceiling
    sizes = stepped(limit, facts.wide)
    return with_rounding(sizes, query if facts.rounded else 1, None if most is None else MOST, bounded)


@lru_cache
def stepped(limit: int, wide: bool) -> tuple[int, ...]:
    """1, 2, 4, and on in steps."""
    turn = 256 if wide else limit + 1
    return (
        *(number for number in (1, 2, 4) if number <= limit),
        *range(8, min(limit + 1, turn), 8),
        *(range(256, limit + 1, 16) if wide else ()),
    )


@lru_cache
def with_rounding(sizes: tuple[int, ...], query: int, chosen: str | None, bounded: bool) -> Captured:
    largest = max(sizes, default=0)
    multiples = [-(-number // query) * query for number in sizes]
    return Captured(largest, max((n for n in multiples if n <= largest), default=0), chosen, bounded)
