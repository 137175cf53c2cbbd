"""KVC007: recurrent states that are read where no accepted token has been."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known

# methods that may propose nothing for a request, or for all of a step
MAY_DRAFT_NOTHING = frozenset({"ngram", "[ngram]", "ngram_gpu", "suffix"})


@rule(
    "KVC007",
    "recurrent-state-stale",
    severity="error",
    evidence=[
        "vllm-project/vllm#39273",
        "vllm-project/vllm#52942",
        "vllm-project/vllm#56531",
        "vllm/v1/attention/backends/gdn_attn.py: build",
    ],
    requires=["KVC004", "KVC005"],
)
def recurrent_state_stale(
    target: Target,
    serving: Serving,
    engine: Engine,
    method: str,
    recurrent: bool,
    recurrent_mode: str | None = None,
    runner: str | None = None,
) -> Iterator[Finding]:
    """After an accepted draft a step without drafts reads an old state, and the output is wrong."""
    if method not in MAY_DRAFT_NOTHING or not recurrent:
        raise NotApplicable("there are drafts in each step, or no recurrent layers")
    stale = known(engine.blocks.recurrent.stale_without_drafts, f"which state {engine} reads in a step without drafts")
    if not stale:
        return
    if known(runner, f"which model runner {engine} chooses") != "V1":
        raise NotApplicable("the states are handled by another runner")
    mode = known(recurrent_mode, f"how {engine} caches the states of recurrent layers")
    yield Finding(
        f"{method} proposes nothing in some steps. After an accepted draft the state of the target's recurrent layers "
        f"is not where a step without drafts looks for it in {engine}, so the state of an earlier token is taken: "
        "the output goes wrong, in greedy requests too.",
        serving.at("method"),
        "silent",
        "certain" if mode == "none" else "likely",
        related=(target.at("architectures"),),
        repair=Repair(
            "manual",
            "a method that drafts in each step (mtp, eagle3, dflash), or a release in which rows without drafts take "
            "the path of drafts",
            ("speculative_config",),
        ),
    )
