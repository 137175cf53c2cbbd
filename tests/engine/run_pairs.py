"""Run pairs on the vLLM of the interpreter that runs this file, one forked child each.

    ENGINE_PYTHON run_pairs.py JOBS.json

JOBS.json lists objects {"name", "target", "draft", "sampling": {parameter: value}, "lengths": [tokens of a
prompt]}; one engine is made for a job, and it generates at one length after the other. vLLM is imported
once, in the parent, so a job costs a few seconds instead of half a minute. Prints JSON lines. The first
one describes the engine; each other one is a job:

    {"name", "outcome", "lengths": {prompt length: {"drafted", "accepted", "wrong"}},
     "error", "message", "moment", "where", "seconds"}

outcome   refused  an error while the engine was made
          died     an error while it generated
          silent   it ran, and at some length no draft token was accepted or the output was wrong
          fine     it ran; at every length something was accepted, and the output was right
          killed   a signal or the time limit ended the child: nothing is known
wrong     generated tokens that are not the target's own: each must be the next id of its cycle (see pairs.py)
moment    config, load, warmup or generate: what the engine was doing when the error came, by the traceback
where     innermost frame of vLLM, as file:line function

This file imports nothing of this project: the engine's interpreter does not have it. mypy runs where there is
no vLLM, so the engine is imported by name.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

# What a forked child needs: no other process, no thread pool of the parent's, no network, no compiler.
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "fork",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
}
# Slow to import; the children find them done. Not every release has every one.
PRELOADED = (
    "vllm.engine.llm_engine",
    "vllm.model_executor.models.llama",
    "vllm.model_executor.models.llama_eagle3",
    "vllm.v1.spec_decode.eagle",
    "vllm.v1.worker.cpu_model_runner",
    "vllm.v1.worker.cpu_worker",
)
# Names that a release may know the draft's architecture under; inspecting one starts a process.
ARCHITECTURES = ("LlamaForCausalLM", "LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM")
# Functions on the way to an error -> what the engine was doing. The last match of the traceback counts.
MOMENTS = {
    "create_engine_config": "config",
    "load_model": "load",
    "determine_available_memory": "warmup",
    "compile_or_warm_up_model": "warmup",
    "warming_up_model": "warmup",
    "initialize_from_config": "warmup",
    "generate": "generate",
}
METRICS = {
    "drafted": "vllm:spec_decode_num_draft_tokens",
    "accepted": "vllm:spec_decode_num_accepted_tokens",
}
# Up to 0.22 the CPU platform replaces the executor that is named "uni" by one with a worker process: slower
# by seconds a pair, and an error arrives without its traceback. The class is left as it is, and its worker is
# the same.
EXECUTOR = "vllm.v1.executor.uniproc_executor.UniProcExecutor"
KV_BLOCKS = 128  # enough for the longest sequence in blocks of 16; zeroing all of the cache space takes 2 s
PROMPTS, NEW_TOKENS, SPECULATIVE_TOKENS, MAX_MODEL_LEN = 2, 12, 3, 1024
VOCAB, SPECIAL = 512, 3  # of the pairs: the cycle runs from SPECIAL to VOCAB - 1
LIMIT_S = 120
ENGINE = {
    "max_model_len": MAX_MODEL_LEN,
    "max_num_batched_tokens": MAX_MODEL_LEN,
    "dtype": "bfloat16",
    "enforce_eager": True,
    "distributed_executor_backend": EXECUTOR,
    "skip_tokenizer_init": True,
    "enable_prefix_caching": False,
    "disable_log_stats": False,  # what is counted are its metrics
}

Run = Callable[[dict[str, Any]], dict[str, Any]]


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Make an engine for the pair, generate at each length, and say what happened."""
    vllm: Any = importlib.import_module("vllm")
    result: dict[str, Any] = {"outcome": "refused", "lengths": {}}
    try:
        llm = vllm.LLM(
            job["target"],
            speculative_config={
                "method": "eagle3",
                "model": job["draft"],
                "num_speculative_tokens": SPECULATIVE_TOKENS,
            },
            max_num_seqs=4,
            num_gpu_blocks_override=KV_BLOCKS,
            **ENGINE,
        )
        result["outcome"] = "died"
        parameters = vllm.SamplingParams(
            max_tokens=NEW_TOKENS,
            ignore_eos=True,
            detokenize=False,
            **job["sampling"],
        )
        before = dict.fromkeys(METRICS, 0)
        for length in job["lengths"]:
            prompts = [
                {"prompt_token_ids": [(7 * prompt + position) % 500 + 3 for position in range(length)]}
                for prompt in range(PROMPTS)
            ]
            outputs = llm.generate(prompts, parameters, use_tqdm=False)
            now = count_tokens(llm)
            result["lengths"][length] = {
                **{name: now[name] - before[name] for name in now},
                "wrong": sum(map(count_wrong, prompts, outputs)),
            }
            before = now
        fine = all(counts["accepted"] and not counts["wrong"] for counts in result["lengths"].values())
        result["outcome"] = "fine" if fine else "silent"
    except BaseException as error:  # a child reports whatever ends it, SystemExit included
        result |= describe(error)
    return result


def count_tokens(llm: Any) -> dict[str, int]:
    """How many so far, by METRICS; an engine that does not speculate has no such metrics."""
    metrics = {metric.name: metric.value for metric in llm.get_metrics() if hasattr(metric, "value")}
    return {name: int(metrics.get(METRICS[name], 0)) for name in METRICS}


def count_wrong(prompt: dict[str, list[int]], output: Any) -> int:
    """How many generated tokens do not follow the token before them in the target's cycle."""
    tokens = [prompt["prompt_token_ids"][-1], *output.outputs[0].token_ids]
    return sum(after != successor(before) for before, after in itertools.pairwise(tokens))


def successor(token: int) -> int:
    """The id that the target of pairs.py puts after this one."""
    return token + 1 if token + 1 < VOCAB else SPECIAL


def describe(error: BaseException) -> dict[str, str]:
    """An error in one line, and where it comes from."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = _frames(error.__traceback__)
    moments = [MOMENTS[function] for _, _, function in frames if function in MOMENTS]
    inside = [
        f"{file.rpartition('/vllm/')[2]}:{line} {function}" for file, line, function in frames if "/vllm/" in file
    ]
    # pydantic names the model that it validates on the first line and says what is wrong on a later one
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    message = " | ".join(lines[:3]) if type(error).__name__ == "ValidationError" else (lines or [""])[0]
    return {
        "error": type(error).__name__,
        "message": message[:300],
        "moment": moments[-1] if moments else "",
        "where": inside[-1] if inside else "",
    }


def _frames(trace: TracebackType | None) -> list[tuple[str, int, str]]:
    return [(frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(trace)]


def run_in_child(job: dict[str, Any], run: Run) -> dict[str, Any]:
    """Run one job in a fork of this process, within the time limit."""
    started = time.monotonic()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        signal.alarm(LIMIT_S)  # not handled: it ends the child
        # so that nothing that the engine prints is taken for a result
        os.dup2(2, 1)
        os.write(write_end, json.dumps(run(job)).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    result = json.loads(said) if said else {"outcome": "killed", "message": f"wait status {status}"}
    return {"name": job["name"], **result, "seconds": round(time.monotonic() - started, 1)}


def preload() -> dict[str, Any]:
    """Import the engine and describe it.

    No torch operation may run here: OpenMP threads do not survive a fork.
    """
    for name in PRELOADED:
        importlib.import_module(name)
    registry: Any = importlib.import_module("vllm.model_executor.models.registry")
    for architecture in ARCHITECTURES:
        if architecture in registry.ModelRegistry.models:
            registry._try_inspect_model_cls(architecture, registry.ModelRegistry.models[architecture])
    triton: Any = importlib.import_module("vllm.triton_utils")
    metadata: Any = importlib.import_module("importlib.metadata")
    return {
        "engine": metadata.version("vllm"),
        "torch": metadata.version("torch"),
        "transformers": metadata.version("transformers"),
        "triton_active": triton.HAS_TRITON,
    }


def main(path: str, run: Run = run) -> None:
    """Run the jobs that the file lists, each by the given function."""
    os.environ |= ENVIRONMENT
    jobs = json.loads(Path(path).read_text(encoding="utf-8"))
    started = time.monotonic()
    facts = preload()
    # An engine collects garbage several times on its way; without this each child would search what the parent
    # has imported, and copy the pages that it touches.
    gc.freeze()
    print(json.dumps({**facts, "seconds": round(time.monotonic() - started, 1)}), flush=True)
    for job in jobs:
        print(json.dumps(run_in_child(job, run)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
