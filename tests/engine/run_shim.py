"""Run jobs with what is on this interpreter's path: vLLM, and the shim where it is there.

    ENGINE_PYTHON run_shim.py JOBS.json

A job is what run_pairs.py takes, but `sampling` is a list, one entry a prompt, and there is `env` (variable: value,
set before the engine is made), `log` (file for all that the engine prints), `engine` (further arguments of LLM) and,
where it is given, `path` (folders that come first on the path of modules).
Each job runs in a fork of a process that has imported vLLM, unless there is only one job: then it runs in this
process, as a server would, so that vLLM may start its own processes as `env` says. Prints a JSON line a job.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

bench: Any = importlib.import_module("run_pairs")  # beside this file


def run(job: dict[str, Any]) -> dict[str, Any]:
    """As run_pairs.run, with the job's own environment, log, sampling and engine."""
    os.environ |= job["env"]
    sys.path[:0] = job.get("path", [])
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    vllm: Any = importlib.import_module("vllm")
    result: dict[str, Any] = {"outcome": "refused", "lengths": {}}
    try:
        llm = vllm.LLM(
            job["target"],
            **{
                "speculative_config": {
                    "method": "eagle3",
                    "model": job["draft"],
                    "num_speculative_tokens": bench.SPECULATIVE_TOKENS,
                },
                "max_model_len": bench.MAX_MODEL_LEN,
                "dtype": "bfloat16",
                "enforce_eager": True,
                "skip_tokenizer_init": True,
                "max_num_seqs": 4,
                # enough for all prompts in one step: a seeded request that is prefilled in parts ends the engine
                # on a CPU, with speculation or without
                "max_num_batched_tokens": 4 * bench.MAX_MODEL_LEN,
                "num_gpu_blocks_override": 512,
                "enable_prefix_caching": False,
                "disable_log_stats": False,
                **job["engine"],
            },
        )
        result["outcome"] = "died"
        parameters = [
            vllm.SamplingParams(max_tokens=bench.NEW_TOKENS, ignore_eos=True, detokenize=False, **each)
            for each in job["sampling"]
        ]
        before = dict.fromkeys(bench.METRICS, 0)
        for length in job["lengths"]:
            prompts = [
                {"prompt_token_ids": [(7 * prompt + position) % 500 + 3 for position in range(length)]}
                for prompt in range(len(parameters))
            ]
            outputs = llm.generate(prompts, parameters, use_tqdm=False)
            metrics = {metric.name: metric.value for metric in llm.get_metrics() if hasattr(metric, "value")}
            now = {name: int(metrics[bench.METRICS[name]]) for name in bench.METRICS}
            result["lengths"][length] = {
                **{name: now[name] - before[name] for name in now},
                "wrong": sum(map(bench.count_wrong, prompts, outputs)),
            }
            before = now
        result["outcome"] = "ran"
    except BaseException as error:  # a child reports whatever ends it, SystemExit included
        result |= bench.describe(error)
    return result


def main(path: str) -> None:
    """Run the jobs that the file lists."""
    jobs = json.loads(Path(path).read_text(encoding="utf-8"))
    os.environ |= bench.ENVIRONMENT | {"VLLM_LOGGING_LEVEL": "INFO"}
    # what the engine prints must not be taken for a result
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if len(jobs) == 1:
        os.environ.pop("TORCHDYNAMO_DISABLE")
        print(json.dumps({"name": jobs[0]["name"], **run(jobs[0])}), file=results, flush=True)
        return
    bench.preload()
    for job in jobs:
        job["engine"] = {"distributed_executor_backend": bench.EXECUTOR, **job["engine"]}
        print(json.dumps(bench.run_in_child(job, run)), file=results, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
