"""Run mutated pairs on the vLLM of the interpreter that runs this file, one forked child each.

    ENGINE_PYTHON run_mutants.py JOBS.json

JOBS.json lists objects {"name", "target", "draft", "serve": {flag: value}, "speculative": {more of its config},
"env": {variable: value}}.
Prints JSON lines as tests/engine/run_pairs.py does: first what the engine is, then of each job

    {"name", "outcome", "lengths": {prompt length: [drafted, accepted]},
     "error", "message", "moment", "where", "seconds"}

outcome   refused  an error, or the end of the process, before the engine was ready
          dies     the same while it generated
          loses    it ran, and at some length a draft token was not accepted, or nothing was drafted
          fine     it ran, and every draft token was accepted
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
run_pairs: Any = importlib.import_module("run_pairs")

LENGTHS, NEW_TOKENS, PROMPTS = (20, 100), 12, 2
LONGEST = 2000  # tokens of a sequence, at which the KV blocks of the bases end
MEMORY: int | None = 10 * 2**30  # what no real deployment has either, in proportion
LIMIT_S = 90
BENCH = ("distributed_executor_backend", "skip_tokenizer_init", "disable_log_stats")  # of this bench, not of the pair
ARCHITECTURES = (
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "Qwen3ForCausalLM",
    "LlamaForCausalLMEagle3",
    "Eagle3LlamaForCausalLM",
    "EagleLlamaForCausalLM",
)
PROGRESS = "progress"


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Make an engine of the job's flags, generate at each length that it serves, and say what happened."""
    if MEMORY is not None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ.update(job["env"])
    vllm: Any = importlib.import_module("vllm")
    progress = Path(job["target"]).with_name(PROGRESS)
    result: dict[str, Any] = {"outcome": "refused", "lengths": {}}
    try:
        llm = vllm.LLM(
            job["target"],
            speculative_config={**job["speculative"], "model": job["draft"]},
            **{name: run_pairs.ENGINE[name] for name in BENCH},
            **job["serve"],
        )
        result["outcome"] = "dies"
        progress.write_text("dies")
        model = llm.llm_engine.model_config
        # as a server does it: the model's own defaults, and over them what a request says
        parameters = vllm.SamplingParams(
            **{
                **model.get_diff_sampling_param(),
                "temperature": 0.0,
                "max_tokens": NEW_TOKENS,
                "ignore_eos": True,
                "detokenize": False,
            }
        )
        before = run_pairs.count_tokens(llm)
        tokens = llm.llm_engine.vllm_config.speculative_config.num_speculative_tokens
        for length in lengths(model.max_model_len, tokens):
            prompts = [
                {"prompt_token_ids": [(7 * prompt + position) % 500 + 3 for position in range(length)]}
                for prompt in range(PROMPTS if length in LENGTHS else 1)
            ]
            llm.generate(prompts, parameters, use_tqdm=False)
            now = run_pairs.count_tokens(llm)
            result["lengths"][length] = [now[name] - before[name] for name in ("drafted", "accepted")]
            before = now
        fine = all(drafted == accepted > 0 for drafted, accepted in result["lengths"].values())
        result["outcome"] = "fine" if fine else "loses"
    except BaseException as error:  # a child reports whatever ends it, SystemExit included
        result |= run_pairs.describe(error)
    return result


def lengths(served: int, tokens: int) -> list[int]:
    """The lengths of prompts: short ones, and the longest after which drafting goes on to the end of the answer.

    No release drafts where the ``tokens`` of a draft would not fit into what is served any more.
    """
    longest = max(1, min(served, LONGEST) - NEW_TOKENS - tokens - 1)
    return [*(length for length in LENGTHS if length < longest), longest]


def main(path: str) -> None:
    """Run the jobs that the file lists."""
    os.environ |= run_pairs.ENVIRONMENT
    run_pairs.ARCHITECTURES, run_pairs.LIMIT_S = ARCHITECTURES, LIMIT_S
    jobs = json.loads(Path(path).read_text(encoding="utf-8"))
    print(json.dumps(run_pairs.preload()), flush=True)
    run_pairs.gc.freeze()
    for job in jobs:
        print(json.dumps(finished(job, run_pairs.run_in_child(job, run))), flush=True)


def finished(job: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """The result, also of a child that was ended."""
    if result["outcome"] == "killed":
        generating = Path(job["target"]).with_name(PROGRESS).exists()
        result |= {"outcome": "dies" if generating else "refused", "error": "killed", "lengths": {}}
    return result


if __name__ == "__main__":
    main(sys.argv[1])
