"""How many tokens and requests a batch may have, and how many tokens are drafted.

Sources: ``_set_default_max_num_seqs_and_batched_tokens_args`` and ``get_batch_defaults`` (vllm/engine/arg_utils.py),
``SpeculativeConfig.__post_init__``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from specfix.deployment import Draft, Hardware, Serving
from specfix.deployment.expected import is_count, is_id
from specfix.engines import Engine
from specfix.engines.conditions import Choice, Known, choose
from specfix.engines.facts.decisions import Step
from specfix.errors import MissingFact, known
from specfix.facts.architecture import DraftClasses
from specfix.record import record

WHO: Final = "OPENAI_API_SERVER"  # whose defaults `vllm serve` takes
GIB: Final = 2**30
TOKENS: Final = "num_speculative_tokens"
BATCH: Final = "max_num_batched_tokens"
SEQS: Final = "max_num_seqs"
# of these the driver does not tell how much memory they have, since they share the host's
SHARES_MEMORY: Final = frozenset({(12, 1)})


@record(frozen=True)
class Batch:
    """The limits of one batch: ``tokens`` in all, and ``seqs``, the requests in it."""

    tokens: int
    seqs: int


def whole(serving: Serving, name: str) -> int | None:
    """A flag that is a whole number; None where it is not given. MissingFact where it cannot be read from here."""
    value = serving.flag(name)
    if value is None:
        if name in serving.unknown:
            raise MissingFact(f"the value of --{name.replace('_', '-')}, {serving.unknown[name]}")
        return None
    if not is_id(value):
        raise MissingFact(f"a whole number for --{name.replace('_', '-')}")
    return int(value)


def size(serving: Serving, name: str) -> int:
    """A parallel size: 1 where it is not given."""
    value = whole(serving, name)
    return 1 if value is None else value


def draft_tokens(
    serving: Serving,
    method: str,
    engine: Engine,
    draft: Draft | None = None,
    draft_classes: DraftClasses | None = None,
) -> int:
    """Tokens that are drafted a step: as given, else what the release takes from the draft's config."""
    if serving.num_speculative_tokens is not None:
        return serving.num_speculative_tokens
    steps = known(engine.speculative.tokens, f"how many tokens {engine} drafts where nobody says")
    values = config_values(serving, method, engine, draft, draft_classes)
    chosen = choose(steps, values)
    for name in chosen.then or ():
        count = values.get(name)
        if isinstance(count, int) and is_count(count):
            return count
    raise MissingFact(TOKENS)


def config_values(
    serving: Serving, method: str, engine: Engine, draft: Draft | None, classes: DraftClasses | None
) -> Known:
    """What the speculative config knows, by the names of the release's source."""
    values: dict[str, object] = {
        name: serving.speculative.get(name, key.default) for name, key in (engine.speculative.keys or {}).items()
    }
    values |= {"method": method, TOKENS: serving.num_speculative_tokens, "target_model_config.model": ""}
    if draft is None:
        return Known(values | {"model": None, "draft_model_config": None})
    of_draft = "draft_model_config.hf_config"
    values |= {"model": draft.served, "draft_model_config.model.lower()": draft.served.lower()}
    for key in ("block_size", "dspark_block_size", "n_predict"):
        values[f"{of_draft}.{key}"] = draft.config.value(key)
    if classes is not None:
        values["draft_model_config.architectures"] = list(classes.built)
        values[f"{of_draft}.model_type"] = classes.model_type
        values[f"{of_draft}.n_predict"] = classes.n_predict
        if not classes.count_known:
            del values[f"{of_draft}.n_predict"]
    return Known(values)


def batches(
    serving: Serving, engine: Engine, hardware: Hardware | None = None, served_length: int | None = None
) -> tuple[Batch, ...]:
    """Each pair of limits that may hold: as given, else the release's defaults for this hardware."""
    tokens, seqs = whole(serving, BATCH), whole(serving, SEQS)
    if tokens is not None and seqs is not None:
        return (Batch(tokens, seqs),)
    pairs = defaults(serving, engine, hardware)
    return tuple(sorted({fitted(tokens, seqs, pair, serving, served_length) for pair in pairs}, key=lambda b: b.tokens))


def fitted(tokens: int | None, seqs: int | None, default: Batch, serving: Serving, served_length: int | None) -> Batch:
    """The defaults put in for what is not given, and fitted to the model as the release does."""
    doubled = 2 if serving.flag("performance_mode") == "throughput" else 1
    number = default.seqs * doubled if seqs is None else seqs
    if tokens is None:
        if served_length is None:
            raise MissingFact("the length that is served")
        if size(serving, "data_parallel_size") > 1 and serving.flag("enable_expert_parallel"):
            raise MissingFact(f"{BATCH}, which for experts under data parallelism has a default of its own")
        tokens = default.tokens * doubled
        if serving.flag("enable_chunked_prefill") is False:
            tokens = max(served_length, tokens)
        tokens = min(number * served_length, tokens)
    return Batch(tokens, min(number, tokens) if seqs is None else number)


def defaults(serving: Serving, engine: Engine, hardware: Hardware | None) -> Iterator[Batch]:
    """The release's defaults; several where they hang on memory that is not known."""
    if hardware is None:
        raise MissingFact("the hardware that will serve")
    tables = [
        known(table.get(hardware.platform), f"the default of {name} in {engine}")
        for name, table in ((BATCH, engine.platforms.max_num_batched_tokens), (SEQS, engine.platforms.max_num_seqs))
    ]
    factor = 1
    if hardware.platform in engine.platforms.per_worker:
        factor = serving.tensor_parallel_size * serving.pipeline_parallel_size
    for memory in memories(hardware, tables):
        values: dict[str, object] = {"platform": hardware.platform, "device_memory": memory}
        if hardware.device is not None:
            values["device_name"] = hardware.device.lower()
        if hardware.compute_capability is not None:
            values["capability"] = list(hardware.compute_capability)
        decided = engine.outcomes.recall(("batch", values), partial(decide, tables, values))
        tokens, seqs = (choice.then for choice in decided)
        if not isinstance(tokens, Mapping) or not isinstance(seqs, Mapping):
            raise MissingFact(f"the defaults of {BATCH} and {SEQS} of {engine} on {hardware.name}")
        yield Batch(factor * int(tokens[WHO]), factor * int(seqs[WHO]))


def decide(tables: list[tuple[Step, ...]], values: dict[str, object]) -> list[Choice]:
    """What each table comes to."""
    return [choose(table, values) for table in tables]


def memories(hardware: Hardware, tables: list[tuple[Step, ...]]) -> list[int]:
    """The memory of a device in bytes; where it is not known one of each kind that the conditions tell apart."""
    shares = hardware.compute_capability in SHARES_MEMORY
    if hardware.memory_gib is not None and not shares:
        return [int(hardware.memory_gib * GIB)]
    steps = [step for table in tables for step in table if "device_memory" in step.names]
    bounds = {number for step in steps for number in numbers(step.when) if number > GIB}
    return [0, *sorted(bounds)]


def numbers(condition: Any) -> Iterator[int]:
    """The whole numbers in a condition."""
    if isinstance(condition, list):
        for part in condition:
            yield from numbers(part)
    elif is_id(condition):
        yield condition
