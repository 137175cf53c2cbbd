"""Sample from pairs on the vLLM of the interpreter that runs this file, one forked child each.

    ENGINE_PYTHON run_random.py JOBS.json

JOBS.json lists objects {"name", "target", "draft": folder or null, "speculative": {more of its config},
"shim": folder or null, "ignore_temperature": bool, "seed", "batches": {batch: [{"prompt", "sampling"}, ...]}}.
Prints JSON lines as run_pairs.py does; a job's is

    {"name", "outcome", "batches": {batch: {"drafted", "accepted", "tokens": [the generated ids of a request, ...]}},
     "error", "message", "moment", "where", "seconds"}

outcome   refused, died or killed, as in run_pairs.py; or fine: it ran
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

run_pairs: Any = importlib.import_module("run_pairs")  # beside this file

MAX_NUM_SEQS = 256
KV_BLOCKS = 2048  # nothing is preempted


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Make an engine, generate each batch, and give the tokens back."""
    if job["shim"]:
        sys.path.insert(0, job["shim"])  # where PYTHONPATH would put it, for this child alone
    vllm: Any = importlib.import_module("vllm")
    result: dict[str, Any] = {"outcome": "refused", "batches": {}}
    try:
        speculative = {
            "method": "eagle3",
            "model": job["draft"],
            "num_speculative_tokens": run_pairs.SPECULATIVE_TOKENS,
            **job["speculative"],
        }
        llm = vllm.LLM(
            job["target"],
            speculative_config=speculative if job["draft"] else None,
            max_num_seqs=MAX_NUM_SEQS,
            num_gpu_blocks_override=KV_BLOCKS,
            seed=job["seed"],
            **run_pairs.ENGINE,
        )
        if job["ignore_temperature"]:
            ignore_temperature()
        result["outcome"] = "died"
        before = run_pairs.count_tokens(llm)
        for batch, requests in job["batches"].items():
            outputs = llm.generate(
                [{"prompt_token_ids": request["prompt"]} for request in requests],
                [vllm.SamplingParams(ignore_eos=True, detokenize=False, **request["sampling"]) for request in requests],
                use_tqdm=False,
            )
            now = run_pairs.count_tokens(llm)
            result["batches"][batch] = {
                **{name: now[name] - before[name] for name in now},
                "tokens": [list(output.outputs[0].token_ids) for output in outputs],
            }
            before = now
        result["outcome"] = "fine"
    except BaseException as error:  # a child reports whatever ends it, SystemExit included
        result |= run_pairs.describe(error)
    return result


def ignore_temperature() -> None:
    """Divide the logits of draft tokens by 1, whatever the request's temperature is."""
    sampler: Any = importlib.import_module("vllm.v1.sample.rejection_sampler")
    right = sampler.expand_batch_to_tokens

    def wrong(x: Any, *arguments: Any, replace_to: int = 0, **settings: Any) -> Any:
        expanded = right(x, *arguments, replace_to=replace_to, **settings)
        return expanded.fill_(1) if replace_to else expanded  # only a temperature has something replaced

    sampler.expand_batch_to_tokens = wrong


if __name__ == "__main__":
    run_pairs.main(sys.argv[1], run)
