"""What the release's config stage says of the speculative config as it will stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from specfix.deployment import Deployment, Draft, Hardware, Target
from specfix.deployment.hardware import PACKAGES
from specfix.engines import Engine
from specfix.engines.conditions import Known
from specfix.engines.facts.decisions import Step
from specfix.errors import known
from specfix.facts.architecture import DraftClasses
from specfix.record import record

HAS = "has_"  # has_arctic_inference(): the engine's own words for whether a package is there
TOKENS = "num_speculative_tokens"
OF_DRAFT = "draft_model_config."
HF = f"{OF_DRAFT}hf_config."


@record(frozen=True)
class Refusals:
    """The refusals of the config stage that hold: for want of num_speculative_tokens, and for all else. ``values`` are
    those that they were decided by; num_speculative_tokens is not among them where it cannot be told. ``of_host`` are
    the functions of which some hang alone, that ask what is installed."""

    of_tokens: tuple[Step, ...]
    of_others: tuple[Step, ...]
    values: Mapping[str, Any]
    of_host: tuple[str, ...] = ()


def refusals(
    deployment: Deployment,
    target: Target,
    engine: Engine,
    draft: Draft | None = None,
    draft_classes: DraftClasses | None = None,
    hardware: Hardware | None = None,
) -> Refusals:
    """What the config stage comes to by what is known when it begins."""
    known(engine.speculative.refusals, f"what the config stage of {engine} refuses")
    values = start_values(deployment, target, engine, draft, draft_classes)
    if hardware is not None and hardware.packages is not None:
        values |= {f"{HAS}{package}()": package in hardware.packages for package in PACKAGES}
    return engine.outcomes.recall(("stage", values), lambda: gone_through(engine.speculative.stage, Known(values)))


def gone_through(stage: Iterable[tuple[str, Step]], values: Known) -> Refusals:
    """Steps are taken in the order of the source: what is settled before one counts for it."""
    # a default that the engine itself puts in place of nothing is not known: only what is stated, or stands otherwise
    tokens: list[Step] = []
    others: list[Step] = []
    host: set[str] = set()
    for sets, step in stage:
        needs: set[str] = set()
        holds = step.holds(values, needs)
        if holds is None and sets == TOKENS and values.get(TOKENS, 0) is None:
            values.pop(TOKENS)  # whether it comes from there cannot be told
        if holds is None and not sets and all(name.endswith("()") and "." not in name for name in needs):
            host |= needs
        if not holds:
            continue
        if sets == "method":
            values["method"] = step.then
        elif sets == TOKENS:
            found = [value for name in step.then if (value := values.get(name)) is not None]
            unread = [name for name in step.then if name not in values]
            if found or not unread:
                values[TOKENS] = found[0] if found else None
            else:
                values.pop(TOKENS, None)  # where it comes from cannot be told
        elif TOKENS in step.names and values.get(TOKENS, 0) is None:
            tokens.append(step)
        else:
            others.append(step)
    return Refusals(tuple(tokens), tuple(others), values, tuple(sorted(host)))


def start_values(
    deployment: Deployment, target: Target, engine: Engine, draft: Draft | None, classes: DraftClasses | None
) -> dict[str, Any]:
    """What is known of the config's fields when the stage begins."""
    serving = deployment.serving
    known(engine.speculative.keys, f"the keys of the speculative config of {engine}")
    values: dict[str, Any] = dict(engine.speculative.defaults)
    dashes = engine.speculative.dashes
    values |= {name.replace("-", "_") if dashes else name: given for name, given in serving.speculative.items()}
    values["method"] = serving.method if deployment.method_given else None
    for name in serving.unknown:
        values.pop(name.removeprefix("speculative."), None)
    if TOKENS not in serving.unknown:
        values[TOKENS] = serving.num_speculative_tokens
    values["target_model_config.hf_config.model_type"] = target.config.values.get("model_type")
    values["target_model_config.hf_text_config.model_type"] = target.model_type
    if draft is None:
        values["model"] = serving.method  # as the engine fills it in
        return values
    built_in = draft.is_part_of(target)
    if not built_in or TOKENS in values:
        values["model"] = None if built_in and values[TOKENS] is None else draft.served
    if classes is not None:
        values[f"{OF_DRAFT}model.lower()"] = draft.served.lower()
        values[f"{OF_DRAFT}architectures"] = list(classes.read)
        values[f"{HF}model_type"] = classes.model_type
        if classes.count_known:
            values[f"{HF}n_predict"] = classes.n_predict
        for key in ("block_size", "dspark_block_size"):
            values[f"{HF}{key}"] = draft.config.values.get(key)
    if "/" in draft.served:
        values["_is_custom_proposer_path(model)"] = False
    return values
