"""PAR006: a number of draft tokens by batch size, with data-parallel ranks."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.budget import size

KEY = "num_speculative_tokens_per_batch_size"
RANKS = "data_parallel_size"


@rule(
    "PAR006",
    "dynamic-count",
    severity="error",
    evidence=["vllm-project/vllm#45963", "vllm/config/vllm.py: _maybe_disable_dynamic_sd_for_data_parallel"],
)
def dynamic_count(serving: Serving, method: str, engine: Engine) -> Iterator[Finding]:
    """Data-parallel ranks may draft different numbers of tokens, or the schedule of them is ignored."""
    ranks = size(serving, RANKS)
    if ranks <= 1 or serving.speculative.get(KEY) is None:
        raise NotApplicable("no schedule of draft tokens among data-parallel ranks")
    if KEY not in known(engine.speculative.keys, f"the keys of the speculative config of {engine}"):
        raise NotApplicable("the release has no such key")
    ignored = known(engine.parallel.dynamic_off, f"what {engine} makes of {KEY} under data parallelism")
    message = f"{KEY} is given and {RANKS} is {ranks}: "
    if ignored:
        message += f"{engine} ignores the schedule, with a line in its log, and drafts num_speculative_tokens always."
    else:
        message += (
            f"the ranks of {engine} see batches of different sizes and draft different numbers of tokens, and wait for "
            "each other in collectives that no longer match: they hang."
        )
    yield Finding(
        message,
        serving.at(f"speculative.{KEY}"),
        "silent" if ignored else "runtime",
        "certain" if ignored else "likely",
        related=(serving.at(RANKS),),
        repair=Repair(
            "safe",
            f"leave {KEY} out",
            ("speculative_config",),
            (("speculative_config", KEY, None),),
        ),
        severity="warning" if ignored else "error",
    )
