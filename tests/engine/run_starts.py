"""Start deployments on the vLLM of the interpreter that runs this file, one forked child each.

    ENGINE_PYTHON run_starts.py JOBS.json

JOBS.json lists objects {"name", "target", "draft", "serve": {flag: value}, "speculative": {more of its config},
"env": {variable: value, or null for none}, "devices": null or a number}. Prints JSON lines as run_pairs.py does; a
job's is

    {"name", "outcome", "answer", "error", "message", "moment", "where", "seconds"}

outcome   refused  an error while the engine was made
          died     an error while it generated
          fine     it answered a short prompt; with ``devices``: each rank found a GPU
answer    the token ids of that answer

With ``devices`` the engine is told that this host is one of CUDA with so many GPUs. A CPU build goes no further there
than its config stage and, in a worker, the moment at which a rank takes its GPU: these two run.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import SimpleNamespace
from typing import Any

run_pairs: Any = importlib.import_module("run_pairs")  # beside this file

NEW_TOKENS, PROMPT = 4, [5, 6, 7]
BENCH = ("distributed_executor_backend", "skip_tokenizer_init", "disable_log_stats")  # of this bench, not of the pair


class Seated(Exception):
    """A rank has found its GPU."""


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Start the deployment, or its first stages alone, and say what happened."""
    result: dict[str, Any] = {"outcome": "refused"}
    speculative = {**job["speculative"], "model": job["draft"]}
    for variable, value in job["env"].items():
        os.environ.pop(variable, None)
        os.environ.update({variable: value} if value is not None else {})
    try:
        if job["devices"] is None:
            start(job["target"], speculative, job["serve"], result)
        else:
            pretend(job["devices"])
            arguments: Any = importlib.import_module("vllm.engine.arg_utils").EngineArgs
            config = arguments(
                job["target"], speculative_config=speculative, skip_tokenizer_init=True, **job["serve"]
            ).create_engine_config()
            for rank in range(config.parallel_config.world_size):
                seat(config, rank)
        result["outcome"] = "fine"
    except BaseException as error:  # a child reports whatever ends it, SystemExit included
        result |= run_pairs.describe(error)
    return result


def start(target: str, speculative: dict[str, Any], serve: dict[str, Any], result: dict[str, Any]) -> None:
    """The whole engine, and an answer."""
    vllm: Any = importlib.import_module("vllm")
    llm = vllm.LLM(target, speculative_config=speculative, **{name: run_pairs.ENGINE[name] for name in BENCH}, **serve)
    result["outcome"] = "died"
    parameters = vllm.SamplingParams(max_tokens=NEW_TOKENS, temperature=0.0, ignore_eos=True, detokenize=False)
    (answer,) = llm.generate([{"prompt_token_ids": PROMPT}], parameters, use_tqdm=False)
    result["answer"] = list(answer.outputs[0].token_ids)


def pretend(devices: int) -> None:
    """Tell the config of parallelism, and the part of torch that a worker asks, that this is a host of CUDA."""
    parallel = vars(importlib.import_module("vllm.config.parallel"))
    true = parallel["current_platform"]
    answers = {"is_cuda": lambda: True, "device_count": lambda: devices}
    others = {name: getattr(true, name) for name in dir(true) if not name.startswith("__") and name not in answers}
    parallel["current_platform"] = SimpleNamespace(**others, **answers)

    def take(device: object) -> None:
        raise Seated

    torch: Any = importlib.import_module("torch")
    vars(torch.cuda)["is_available"] = lambda: True
    vars(torch.accelerator).update(device_count=lambda: devices, set_device_index=take)


def seat(config: Any, rank: int) -> None:
    """Let a worker of this rank take its GPU."""
    worker: Any = object.__new__(importlib.import_module("vllm.v1.worker.gpu_worker").Worker)
    worker.device_config = SimpleNamespace(device_type="cuda")
    worker.parallel_config, worker.local_rank = config.parallel_config, rank
    try:
        worker.init_device()
    except Seated:
        return
    raise RuntimeError(f"rank {rank} took no GPU")


if __name__ == "__main__":
    run_pairs.main(sys.argv[1], run)
