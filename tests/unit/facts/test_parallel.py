"""How the deployment is cut among devices."""

from __future__ import annotations

import pytest

from specfix.deployment import Draft, Serving
from specfix.deployment.config import Config
from specfix.deployment.presets import PRESETS
from specfix.engines.find import find_engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.parallel import async_scheduling, context_parallel_size, draft_parallel_size, kv_heads

H200 = PRESETS["h200"]


def test_the_drafts_tensor_parallel_size() -> None:
    assert draft_parallel_size(Serving(tensor_parallel_size=4)) == 4
    assert draft_parallel_size(Serving(tensor_parallel_size=4, speculative={"draft_tensor_parallel_size": 1})) == 1
    with pytest.raises(MissingFact):
        draft_parallel_size(Serving(speculative={"draft_tensor_parallel_size": "1"}))


@pytest.mark.parametrize(
    ("version", "method", "flags", "expected"),
    [
        ("0.12.0", "mtp", {}, False),  # only where it is asked for
        ("0.28.0", "mtp", {}, True),
        ("0.28.0", "mtp", {"async_scheduling": False}, False),
        ("0.28.0", "medusa", {}, False),
        ("0.33.0", "mtp", {}, False),  # the V1 runner's stages hand on one token
    ],
)
def test_asynchronous_scheduling(version: str, method: str, flags: dict[str, object], expected: bool) -> None:
    serving = Serving(pipeline_parallel_size=2, flags=flags)
    assert async_scheduling(serving, method, find_engine(f"vllm=={version}"), ("V1",), H200) is expected


def test_an_executor_that_decides_for_itself() -> None:
    serving = Serving(flags={"distributed_executor_backend": "ray"})
    with pytest.raises(MissingFact):
        async_scheduling(serving, "mtp", find_engine("vllm==0.28.0"), ("V1",), H200)


def test_context_parallelism() -> None:
    flags = {"decode_context_parallel_size": 2, "prefill_context_parallel_size": 4}
    assert context_parallel_size(Serving(flags=flags)) == 8
    with pytest.raises(NotApplicable):
        context_parallel_size(Serving())


def test_heads_of_a_drafts_cache() -> None:
    def heads(**values: int) -> int:
        return kv_heads(Draft("draft", Config({"num_attention_heads": 8, **values}, "draft.json")))

    assert (heads(), heads(num_key_value_heads=2)) == (8, 2)
    with pytest.raises(NotApplicable):
        heads(kv_lora_rank=512)
