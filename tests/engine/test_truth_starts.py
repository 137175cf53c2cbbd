"""Deployments on both sides of the line that a rule draws: an engine refuses the one, in the words that the rule's page
quotes, and serves the other. Or it serves both without a word, and answers the one wrong.

What a CPU build cannot show of GPUs is asked of the two places in it that count them (see run_starts.py).
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from specfix.checking import check
from specfix.deployment import Hardware
from specfix.deployment.probe import cpu_flags
from specfix.deployment.serving import COMMON
from tests.agreement.bases import BASES, Case, Tensors
from tests.agreement.bench import plain_folder, write
from tests.agreement.mutations import drop, rename

from .chosen import releases
from .engines import engine
from .truth import MINUTES

pytestmark = pytest.mark.engine

FLAGS = cpu_flags(Path("/"))  # of this very host: it runs the engine
HOST = Hardware("the tests' host", "cpu", cpu_flags=FLAGS, triton_installed=False, triton_drivers=0, packages=())
GPUS = Hardware("GPUs", "cuda", compute_capability=(9, 0), memory_gib=80.0)
FULL, SLIDING = "full_attention", "sliding_attention"
NOVEL = {"rope_type": "novel", "factor": 2.0}
UNKNOWN_ROPE = "Unknown RoPE scaling type"
TWO = {"rope_type": "linear", "type": "dynamic", "factor": 2.0}
MISCOUNTED = "must be equal to the number of `layer_types`"
TOO_MANY = "is larger than the number of available GPUs"
NO_SEAT = ("is out of bounds for 1 devices", "less than or equal to the number of visible devices (1)")
NO_ROOM = "To serve at least one request with the model's max seq len"
GIB = 2**30
ANSWER = [8, 9, 10, 11]  # of the bases' targets to the prompt of run_starts.py
A_TOKEN = 2 * 8 * 4 * 32 * 2  # bytes in the cache of the target: key and value, layers, heads, width, bytes a value
OF_DRAFT = A_TOKEN // 8  # of its one layer
MOST = GIB // A_TOKEN  # tokens of the target alone that 1 GiB holds
FIT = (GIB // (A_TOKEN + OF_DRAFT) // 128 - 1) * 128  # of both, in a CPU's blocks, one of which may be kept back


@dataclass(frozen=True)
class Start:
    """A deployment; what the check says of it, as ``POS013 load``; and what the engine then says, which may have
    several ways to say it. Without these it is served, and no error is foretold; ``WGT020 silent`` is served, and
    answers with other tokens than the target's."""

    case: Case
    said: str = ""
    words: str | tuple[str, ...] = ""
    devices: int | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)
    """None takes a variable away that the bench sets."""
    undecided: tuple[str, ...] = ()
    """Releases of which the check says that it cannot tell."""


def changed(base: str = "plain", **sides: Mapping[str, Any]) -> Case:
    """A base pair with other values in a config, or in its flags; None takes a flag away."""
    case = copy.deepcopy(BASES[base]())
    for side, values in sides.items():
        getattr(case, side).update(values)
    case.serve = {name: value for name, value in case.serve.items() if value is not None}
    return case


def rope(side: str, block: Mapping[str, Any], base: str = "plain") -> Case:
    return changed(base, **{side: {"rope_scaling": dict(block)}})


def speculators(count: int) -> Case:
    case = changed("speculators")
    case.draft["transformer_layer_config"]["layer_types"] = [FULL] * count
    return case


def tensors(side: str, change: Callable[[Tensors], None], base: str = "plain", **sides: Mapping[str, Any]) -> Case:
    """A base pair with other tensors in one of its checkpoints."""
    case = changed(base, **sides)
    change(getattr(case, f"{side}_weights"))
    return case


def beside(old: str, new: str) -> Callable[[Tensors], None]:
    """The tensors whose name starts with ``old`` once more, as ``new``."""

    def change(found: Tensors) -> None:
        found |= {name.replace(old, new): found[name] for name in list(found) if name.startswith(old)}

    return change


def long(length: int, **serve: Any) -> Case:
    """A pair of which so much is served, in as much of a KV cache as there is."""
    positions = {"max_position_embeddings": 2 * MOST}
    return changed(
        target=positions, draft=positions, serve={"max_model_len": length, "num_gpu_blocks_override": None, **serve}
    )


def ranks(**serve: Any) -> Case:
    return changed(serve=serve)


TRANSFORMERS_4 = ("0.22.1",)  # admit a Transformers that does not count
NO_LAYER: dict[str, Any] = {"said": "WGT007 load", "words": "layers.7"}
HEAD = "lm_head.weight"
SPACE = {"VLLM_CPU_KVCACHE_SPACE": "1"}
NO_SPACE = {"VLLM_CPU_KVCACHE_SPACE": None}
UNKNOWN: dict[str, Any] = {"said": "POS013 load", "words": UNKNOWN_ROPE}
TWOFOLD: dict[str, Any] = {
    "said": "POS014 config",
    "words": "Found conflicts between 'rope_type=",
    "undecided": TRANSFORMERS_4,
}
HALVED: dict[str, Any] = TWOFOLD | {"words": "Legacy rope_type 'mrope' requires 'mrope_section'"}
NO_FP8: dict[str, Any] = {"said": "HWR013 load", "words": "FP8 KV cache on CPU requires x86 with AVX-512 or AMX"}
HAS_FP8 = not {"avx512f", "amx_tile"}.isdisjoint(FLAGS or ())
COUNTED: dict[str, Any] = {"said": "MTH020 config", "words": MISCOUNTED, "undecided": TRANSFORMERS_4}
CROWDED: dict[str, Any] = {"said": "PAR012 config", "words": TOO_MANY}
LONG: dict[str, Any] = {"said": "KVC014 load", "words": NO_ROOM, "env": SPACE}
STARTS = {
    "target, a novel type": Start(rope("target", NOVEL), **UNKNOWN),
    "target, null": Start(rope("target", {"rope_type": None, "factor": 2.0}), **UNKNOWN),
    "target, no type": Start(rope("target", {"factor": 2.0})),
    "Qwen3 target, a novel type": Start(rope("target", NOVEL, "qwen3"), **UNKNOWN),
    "Mistral target, a novel type": Start(rope("target", NOVEL, "sliding-window"), **UNKNOWN),
    "EAGLE3, a novel type": Start(rope("draft", NOVEL), **UNKNOWN),
    "EAGLE3, the old key": Start(rope("draft", {"type": "novel", "factor": 2.0}), **UNKNOWN),
    "EAGLE3, the old key, null": Start(rope("draft", {"type": None, "factor": 2.0}), **UNKNOWN),
    "EAGLE3, no type": Start(rope("draft", {"factor": 2.0})),
    "EAGLE3, a type that is known": Start(rope("draft", {"rope_type": "proportional", "factor": 1.0})),
    "EAGLE, a novel type": Start(rope("draft", NOVEL, "eagle"), **UNKNOWN),
    "a draft model, a novel type": Start(rope("draft", NOVEL, "draft-model"), **UNKNOWN),
    "target, two types": Start(rope("target", TWO), **TWOFOLD),
    "Qwen3 target, two types": Start(rope("target", TWO, "qwen3"), **TWOFOLD),
    "EAGLE, two types": Start(rope("draft", TWO, "eagle"), **TWOFOLD),
    "EAGLE3, two types, one of them null": Start(rope("draft", TWO | {"type": None}), **TWOFOLD),
    "EAGLE3, one type twice": Start(rope("draft", TWO | {"type": "linear"})),
    "a draft model, two types": Start(rope("draft", TWO, "draft-model"), **TWOFOLD),
    "target, M-RoPE without its section": Start(rope("target", {"rope_type": "mrope"}), **HALVED),
    "EAGLE3, M-RoPE without its section": Start(rope("draft", {"type": "mrope"}), **HALVED),
    "EAGLE3, once M-RoPE": Start(rope("draft", {"type": "mrope", "rope_type": "default"})),
    "Qwen3 target, a layer type less": Start(changed("qwen3", target={"layer_types": [FULL] * 7}), **COUNTED),
    "Qwen3 target, one each": Start(changed("qwen3", target={"layer_types": [FULL] * 8})),
    "Qwen3 target, one more": Start(changed("qwen3", target={"layer_types": [FULL] * 9}), **COUNTED),
    "Llama target, a layer type less": Start(changed(target={"layer_types": [FULL] * 7}), **COUNTED),
    "Mistral target, a layer type less": Start(
        changed("sliding-window", target={"layer_types": [SLIDING] * 7}), **COUNTED
    ),
    "EAGLE3, a layer type more": Start(changed(draft={"layer_types": [FULL] * 2}), **COUNTED),
    "EAGLE3, one layer type": Start(changed(draft={"layer_types": [FULL]})),
    "EAGLE3 of Qwen3, its target's": Start(
        changed(draft={"model_type": "qwen3", "layer_types": [FULL] * 8}), **COUNTED
    ),
    "EAGLE3 of Qwen3, one": Start(changed(draft={"model_type": "qwen3", "layer_types": [FULL]})),
    "speculators, a layer type more": Start(speculators(2), **COUNTED),
    "speculators, one": Start(speculators(1)),
    "two ranks, one GPU": Start(ranks(tensor_parallel_size=2), devices=1, **CROWDED),
    "two ranks, two GPUs": Start(ranks(tensor_parallel_size=2), devices=2),
    "two stages, one GPU": Start(ranks(pipeline_parallel_size=2), "PAR012 config", TOO_MANY, devices=1),
    "two prefill ranks, one GPU": Start(ranks(prefill_context_parallel_size=2), devices=1, **CROWDED),
    "two ranks twice, one GPU": Start(ranks(tensor_parallel_size=2, data_parallel_size=2), devices=1, **CROWDED),
    "two ranks twice by Ray, one GPU": Start(
        ranks(tensor_parallel_size=2, data_parallel_size=2, data_parallel_backend="ray"), devices=1, **CROWDED
    ),
    "two ranks of mp, one GPU": Start(
        ranks(tensor_parallel_size=2, distributed_executor_backend="mp"), "PAR012 load", NO_SEAT, devices=1
    ),
    "two ranks of mp, two GPUs": Start(ranks(tensor_parallel_size=2, distributed_executor_backend="mp"), devices=2),
    "longer than the cache": Start(long(MOST + 1), **LONG),
    "longer than both caches": Start(long(GIB // (A_TOKEN + OF_DRAFT) + 1), **LONG),
    "as long as both caches": Start(long(FIT), env=SPACE),
    "half as long, but float32": Start(long(MOST // 2 + 1, dtype="float32"), **LONG),
    "EAGLE3, layers.7": Start(tensors("draft", rename("midlayer.", "layers.7.")), **NO_LAYER),
    "EAGLE3, layers.7 too": Start(tensors("draft", beside("midlayer.", "layers.7.")), **NO_LAYER),
    "EAGLE3, layers.0": Start(tensors("draft", rename("midlayer.", "layers.0."))),
    "EAGLE3, layers.0 and 7": Start(tensors("draft", rename("layers.1.", "layers.7."), "two-layers"), **NO_LAYER),
    "EAGLE, layers.7": Start(tensors("draft", rename("layers.0.", "layers.7."), "eagle"), **NO_LAYER),
    "target, no head": Start(tensors("target", drop(HEAD)), "WGT020 silent"),
    "Qwen3 target, no head": Start(tensors("target", drop(HEAD), "qwen3"), "WGT020 silent"),
    "target, tied": Start(changed("tied")),
    "half as long": Start(long(MOST // 2 + 1), env=SPACE),
    "longer than the bytes": Start(long(MOST + 1, kv_cache_memory_bytes=GIB), **LONG | {"env": NO_SPACE}),
    "as long as the bytes": Start(long(FIT, kv_cache_memory_bytes=GIB), env=NO_SPACE),
    "longer than the bytes, but for the variable": Start(
        long(MOST + 1, kv_cache_memory_bytes=GIB), env={"VLLM_CPU_KVCACHE_SPACE": "2"}
    ),
    "a cache in fp8": Start(changed(serve={"kv_cache_dtype": "fp8_e5m2"}), **({} if HAS_FP8 else NO_FP8)),
    "a cache in bfloat16": Start(changed(serve={"kv_cache_dtype": "bfloat16"})),
}


@pytest.mark.parametrize("version", releases(("0.22.1", "0.26.0", "0.32.0"), "0.32.0"))
def test_each_side_of_the_line(version: str, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for name, start, result, said in compared(version, tmp_path):
        expected = f"cannot tell {start.said.split()[0]}" if version in start.undecided else start.said
        words = (start.words,) if isinstance(start.words, str) else start.words
        silent = start.said.endswith(" silent")
        outcome = "fine" if silent or not start.said else "refused"
        right = result.get("answer", ANSWER) == ANSWER
        counts[start.said.split()[0] if start.said else "served"] += 1
        heard = any(each in result.get("message", "") for each in words)
        if result["outcome"] != outcome or right is silent or not heard or expected not in said:
            wrong.append((name, said, result))
    print(f"\n{version}: {dict(counts)}")
    assert not wrong, json.dumps(wrong, indent=1)


def compared(version: str, folder: Path) -> Iterator[tuple[str, Start, dict[str, Any], list[str]]]:
    """Name, start, what the engine did, and what the check says."""
    release = engine(version)
    with plain_folder() as models:
        jobs = [
            {
                **write(name, start.case, models / str(number), models / "weights"),
                "env": dict(start.env),
                "devices": start.devices,
            }
            for number, (name, start) in enumerate(STARTS.items())
        ]
        facts, *results = release.run("run_starts.py", jobs, folder, timeout=MINUTES * 60)
        assert facts["engine"] == f"{version}+cpu"
        for job, result in zip(jobs, results, strict=True):
            start = STARTS[job["name"]]
            yield job["name"], start, result, findings(version, start, job)


def findings(version: str, start: Start, job: Mapping[str, Any]) -> list[str]:
    """The errors of the report, as codes and phases, and the deployment's rule if it cannot tell; "" for neither."""
    given = dict(job["serve"])
    options = {name: given.pop(name) for name in list(given) if name in COMMON}
    report = check(
        job["target"],
        job["draft"],
        **options,
        greedy=True,
        flags=given,
        env={name: value for name, value in start.env.items() if value is not None},
        speculative_config=job["speculative"],
        engine=f"vllm=={version}",
        hardware=HOST if start.devices is None else replace(GPUS, devices=start.devices),
    )
    errors = [f"{one.code} {one.finding.phase}" for one in report.findings if one.severity == "error"]
    skipped = [f"cannot tell {one.code}" for one in report.skipped if start.said.startswith(one.code)]
    return errors + skipped or [""]
