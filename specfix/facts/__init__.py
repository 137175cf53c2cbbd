"""What follows from a deployment and a release together: the facts that rules ask for by name.

A provider is a function: its name is the fact's name, its parameters name the facts that it needs. It raises
MissingFact where it cannot tell and NotApplicable where the question does not arise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specfix.facts.architecture import draft_classes
from specfix.facts.aux import aux_plan
from specfix.facts.blocks import backend, block_size, fixed_kernels
from specfix.facts.budget import batches, draft_tokens
from specfix.facts.decoder import built_draft_model, built_target
from specfix.facts.graphs import captured
from specfix.facts.layers import layer_kinds
from specfix.facts.lengths import draft_length, draft_rows, served_length
from specfix.facts.memory import memory
from specfix.facts.method import method, settled_method
from specfix.facts.parallel import async_scheduling
from specfix.facts.positions import shortfalls
from specfix.facts.quantisation import mtp_scheme, mtp_tensors, quant_origin
from specfix.facts.recurrent import recurrent, recurrent_draft, recurrent_mode, state_pages
from specfix.facts.runner import runner, runner_choices, runners
from specfix.facts.served_dtype import served_dtype
from specfix.facts.speculative_config import refusals
from specfix.facts.tokens import vocabularies, vocabulary_sizes
from specfix.facts.triton import has_triton, stand_ins
from specfix.facts.weights import draft_head

PROVIDERS: dict[str, Callable[..., Any]] = {
    provider.__name__: provider
    for provider in (
        async_scheduling,
        aux_plan,
        backend,
        batches,
        block_size,
        built_draft_model,
        built_target,
        captured,
        draft_classes,
        draft_head,
        draft_length,
        draft_rows,
        draft_tokens,
        fixed_kernels,
        has_triton,
        layer_kinds,
        memory,
        method,
        refusals,
        mtp_scheme,
        mtp_tensors,
        quant_origin,
        recurrent,
        recurrent_draft,
        recurrent_mode,
        runner,
        runner_choices,
        runners,
        served_dtype,
        served_length,
        settled_method,
        shortfalls,
        stand_ins,
        vocabularies,
        vocabulary_sizes,
        state_pages,
    )
}
