"""How a draft that is shorter than what is served fails, by runner.

Seen on vLLM 0.26.0 (CPU, H200) and 0.32.0 (CPU); read in gpu_model_runner.py (``effective_drafter_max_model_len``), in
the V2 runner, which has no such guard, and in ``_limit_max_model_len_to_draft`` (vllm/config/vllm.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from specfix.deployment import Deployment, Draft, Model, Serving
from specfix.deployment.rope import Rope
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.architecture import first_known
from specfix.facts.lengths import raises_positions
from specfix.facts.method import inner_name
from specfix.record import record

Kind = Literal["stops", "overruns", "shortens"]
Surface = Literal["target_config", "draft_config"]
TRANSFORMERS = "transformers"  # a value of --model-impl, and the module that serves Transformers' own classes
HEADS = frozenset({"eagle", "eagle3", "dflash", "dspark"})

# drafts that are fed the target's own positions
SHARES_POSITIONS = frozenset({"eagle", "eagle3", "dflash", "dspark", "mtp"})


def rotary_models(deployment: Deployment, engine: Engine) -> Iterator[tuple[Surface, Model]]:
    """The models whose rotary embedding the release builds as their configs say, and where each is repaired. What runs
    as a model of Transformers has Transformers' own."""
    draft, method = deployment.draft, deployment.serving.method
    if deployment.serving.flag("model_impl") != TRANSFORMERS and not of_transformers(deployment.target, engine):
        yield "target_config", deployment.target
    built = method is not None and inner_name(method, engine) in SHARES_POSITIONS | {"draft_model"}
    whole = method == "draft_model"
    if draft is None or not built or draft.is_part_of(deployment.target) or (whole and of_transformers(draft, engine)):
        return
    yield "draft_config", draft


def of_transformers(model: Model, engine: Engine) -> bool:
    """Whether the release has no class of its own for a model, so that Transformers' may serve it."""
    name = first_known(model.architectures, engine)
    return name is not None and engine.methods.architectures.get(name, TRANSFORMERS).startswith(TRANSFORMERS)


def hands_rope_on(model: Model, engine: Engine) -> bool:
    """Whether the model's class is known to build its rotary embedding of the whole RoPE block: a plain decoder or a
    head. Another one may have none, or leave the scaling out."""
    if isinstance(model, Draft) and model.kind in HEADS:
        return True
    return first_known(model.architectures, engine) in engine.eagle.decoders


def stated_block(model: Model, rope: Rope) -> Mapping[str, Any] | None:
    """The config's block that a RoPE comes from; None where it states none, or one for each type of layer."""
    if not rope.pointer or rope.layer_type is not None:
        return None
    block: Any = model.config.values
    for part in rope.pointer.split("/")[1:]:
        block = block[part]
    return cast("Mapping[str, Any]", block)


@record(frozen=True)
class Shortfall:
    """What one runner does past ``limit`` tokens: stops drafting for the whole batch, overruns the draft's rotary
    table, or shortens the context that is served."""

    runner: str
    kind: Kind
    limit: int


def shortfalls(
    draft: Draft,
    method: str,
    engine: Engine,
    runners: tuple[str, ...],
    served_length: int,
    draft_length: int,
    serving: Serving,
    draft_rows: int | None = None,
    draft_tokens: int | None = None,
) -> tuple[Shortfall | None, ...]:
    """For each runner that may be chosen, how it falls short, or None where the draft reaches far enough."""
    if method not in SHARES_POSITIONS | {"draft_model"}:
        raise NotApplicable(f"{method} has no positions of its own")
    step = (draft_tokens or 1) + 1
    return tuple(
        shortfall(runner, draft, method, engine, served_length, draft_length, draft_rows, step, serving.enforce_eager)
        for runner in runners
    )


def shortfall(
    runner: str,
    draft: Draft,
    method: str,
    engine: Engine,
    served_length: int,
    draft_length: int,
    draft_rows: int | None,
    step: int,
    eager: bool,
) -> Shortfall | None:
    """How ``runner`` falls short with this draft; ``draft_rows`` None where the table's size is not known.

    ``step``: the most tokens that one step of drafting yields. What is silently lost of the last ``step`` tokens that a
    request may have costs it one step at most: that is no shortfall.
    """
    reach = needed = served_length
    if runner == "V2" and limits_target(draft, method, engine):
        if draft_length < served_length:
            return Shortfall(runner, "shortens", draft_length)
    elif runner == "V1" and known(engine.lengths.v1_guard, f"when {engine} stops drafting"):
        reach = draft_length  # the guard keeps longer sequences from the table
        # ... and the last token that it lets be drafted, which is not fed again
        needed = reach - 1 + (engine.lengths.guard_extra or {}).get(method, 0)
    elif method == "draft_model":
        return None
    if method != "draft_model" and draft_rows is not None and draft_rows < needed - (step if eager else 0):
        return Shortfall(runner, "overruns", draft_rows)
    if reach < served_length - step:
        return Shortfall(runner, "stops", draft_length)
    if method != "draft_model":
        known(draft_rows, "the rows of the draft's rotary table")
    return None


def limits_target(draft: Draft, method: str, engine: Engine) -> bool:
    """Whether the V2 runner of this release lowers the target's max_model_len to this draft's length."""
    limits = known(engine.lengths.limits_target, f"whether {engine} shortens the context to the draft's")
    return limits and not raises_positions(draft, method, engine)


def consequence(
    short: Shortfall, eager: bool, lifted: bool, engine: Engine
) -> tuple[Literal["silent", "runtime"], str]:
    """Phase and words of what the runner does past the limit."""
    runner = f"{engine}'s {short.runner} runner"
    if short.kind == "stops":
        although = " (raising the table, as this release does, does not raise that limit)" if lifted else ""
        return "silent", (
            f"Once the longest sequence of a batch nears {short.limit} tokens, {runner} stops drafting for the whole "
            f"batch{although}: nothing more is accepted, and no log line says so."
        )
    if eager:
        return "silent", (
            f"Past {short.limit} tokens {runner} reads rows that are not in the rotary table: the drafts are garbage, "
            "next to nothing is accepted, and no log line says so."
        )
    return "runtime", (
        f"Past {short.limit} tokens {runner} indexes rows that are not in the rotary table: the compiled draft fails "
        "with a device-side assert and the engine dies."
    )
