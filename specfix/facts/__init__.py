"""What follows from a deployment and a release together: the facts that rules ask for by name.

A provider is a function: its name is the fact's name, its parameters name the facts that it needs. It raises
MissingFact where it cannot tell and NotApplicable where the question does not arise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specfix.facts.aux import aux_plan
from specfix.facts.blocks import backend, block_size
from specfix.facts.layers import layer_kinds
from specfix.facts.lengths import draft_length, draft_rows, served_length
from specfix.facts.method import method
from specfix.facts.positions import shortfalls
from specfix.facts.runner import runner, runners
from specfix.facts.triton import has_triton, stand_ins

PROVIDERS: dict[str, Callable[..., Any]] = {
    provider.__name__: provider
    for provider in (
        aux_plan,
        backend,
        block_size,
        draft_length,
        draft_rows,
        has_triton,
        layer_kinds,
        method,
        runner,
        runners,
        served_length,
        shortfalls,
        stand_ins,
    )
}
