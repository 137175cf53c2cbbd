"""PAR005: data-parallel ranks of which one stops drafting while the others wait for it."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.budget import size
from specfix.facts.lengths import size_only

RANKS = "data_parallel_size"
KEY = "max_position_embeddings"


@rule(
    "PAR005",
    "ranks-diverge",
    severity="error",
    evidence=[
        "vllm-project/vllm#29422",
        "vllm-project/vllm#44185",
        "vllm/v1/worker/gpu_model_runner.py: input_fits_in_drafter",
    ],
)
def ranks_diverge(
    target: Target,
    draft: Draft,
    serving: Serving,
    method: str,
    engine: Engine,
    runners: tuple[str, ...],
    served_length: int,
    draft_length: int,
) -> Iterator[Finding]:
    """One data-parallel rank stops drafting, the others wait for it for ever."""
    ranks = size(serving, RANKS)
    if ranks <= 1:
        raise NotApplicable("no data parallelism")
    if method not in ("eagle", "eagle3", "mtp", "draft_model"):
        raise NotApplicable("the draft takes part in no collective of the ranks")
    waits = known(engine.parallel.ranks_wait, f"what a rank of {engine} does that stops drafting")
    if waits or not known(engine.lengths.v1_guard, f"when {engine} stops drafting") or "V1" not in runners:
        return
    if runners != ("V1",):
        raise MissingFact(f"which model runner {engine} chooses")
    if draft_length >= served_length:
        yield from at_the_end(target, serving, engine, served_length)
        return
    yield Finding(
        f"The draft reaches {draft_length} tokens, {served_length} are served, and data_parallel_size is {ranks}. A "
        "rank "
        f"whose longest sequence passes the draft's length stops drafting in {engine}, and the other ranks wait for it "
        "in a collective: all of them hang.",
        draft.at(KEY),
        "runtime",
        "likely",
        related=(serving.at(RANKS),),
        repair=repair(draft, draft_length, served_length),
    )


def at_the_end(target: Target, serving: Serving, engine: Engine, served_length: int) -> Iterator[Finding]:
    """The same of a request that fills all of the served length, where experts make the ranks wait for each other."""
    keys = known(engine.traits.expert_keys, f"how {engine} counts experts")
    experts = target.config.find(*keys)
    if not experts or not experts[1] or serving.flag("enable_expert_parallel") is not True:
        return
    yield Finding(
        f"data_parallel_size is {size(serving, RANKS)} and the ranks share experts. A rank with a request that nears "
        f"{served_length} tokens, the served length, stops drafting in {engine}, and the others wait for it in a "
        "collective: all of them hang.",
        serving.at(RANKS),
        "runtime",
        "likely",
        related=(serving.at("max_model_len"),),
        repair=Repair(
            "manual", "keep requests shorter than --max-model-len, or --data-parallel-size 1", ("engine_args",)
        ),
        severity="warning",
    )


def repair(draft: Draft, draft_length: int, served_length: int) -> Repair:
    """A longer draft where that only adds rows to its rotary table, else a shorter context."""
    stated = draft.config.stated(KEY)
    if size_only(draft) and stated is not None and draft.integer(KEY) < served_length:
        return Repair(
            "safe",
            f"set {KEY} to {served_length} in the draft's config.json; the weights stay as they are",
            ("draft_config",),
            (("draft_config", stated[0], served_length),),
        )
    return Repair("manual", f"--max-model-len {draft_length}, or --data-parallel-size 1", ("engine_args",))
