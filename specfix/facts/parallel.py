"""A draft on several devices: how the deployment is cut, and whether scheduling is asynchronous."""

from __future__ import annotations

from typing import Final

from specfix.deployment import Draft, Hardware, Serving
from specfix.engines import Engine
from specfix.engines.conditions import Known, choose
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.budget import size

DRAFT_TP: Final = "draft_tensor_parallel_size"
# methods that have no draft to cut
WITHOUT_DRAFT: Final = frozenset({"ngram", "ngram_gpu", "suffix"})


def draft_parallel_size(serving: Serving) -> int:
    """The draft's tensor parallel size: as given, else the target's."""
    given = serving.speculative.get(DRAFT_TP)
    if given is None:
        return serving.tensor_parallel_size
    if isinstance(given, bool) or not isinstance(given, int):
        raise MissingFact(f"a whole number for {DRAFT_TP}")
    return given


def async_scheduling(
    serving: Serving, method: str, engine: Engine, runners: tuple[str, ...], hardware: Hardware | None = None
) -> bool:
    """Whether scheduling is asynchronous: as asked for, else as the release decides."""
    asked = serving.flag("async_scheduling")
    if isinstance(asked, bool):
        return asked
    backend = serving.flag("distributed_executor_backend") or "mp"
    values: dict[str, object] = {
        "model_config.runner_type": "generate",
        "speculative_config.method": method,
        "speculative_config.disable_padded_drafter_batch": bool(
            serving.speculative.get("disable_padded_drafter_batch")
        ),
        "parallel_config.pipeline_parallel_size": serving.pipeline_parallel_size,
        "parallel_config.tensor_parallel_size": serving.tensor_parallel_size,
        "parallel_config.data_parallel_size": size(serving, "data_parallel_size"),
        "parallel_config.enable_dbo": bool(serving.flag("enable_dbo")),
        "parallel_config.distributed_executor_backend": backend,
        "cache_config.mamba_cache_mode": serving.flag("mamba_cache_mode") or "none",
    }
    if backend in ("mp", "uni"):  # others decide for themselves
        values["Executor.get_class(self).supports_async_scheduling()"] = True
    if hardware is not None:
        values["platform"] = hardware.platform
    if len(runners) == 1:
        values["use_v2_model_runner"] = runners[0] == "V2"
    steps = engine.platforms.async_scheduling
    if not steps:  # a release that schedules so only where it is asked to
        return False
    chosen = engine.outcomes.recall(("async", values), lambda: choose(steps, Known(values)))
    return bool(known(chosen.then, f"whether {engine} schedules asynchronously: it hangs on {', '.join(chosen.needs)}"))


def context_parallel_size(serving: Serving) -> int:
    """Ranks among which the KV cache of one sequence is split. NotApplicable where it is not."""
    ranks = size(serving, "decode_context_parallel_size") * size(serving, "prefill_context_parallel_size")
    if ranks <= 1:
        raise NotApplicable("no context parallelism")
    return ranks


def kv_heads(draft: Draft) -> int:
    """Heads of the draft's KV cache. NotApplicable for latent attention, which has one for all."""
    if draft.number("kv_lora_rank"):
        raise NotApplicable("the draft has multi-head latent attention")
    heads = draft.number("num_key_value_heads")
    return draft.integer("num_attention_heads") if heads is None else heads
