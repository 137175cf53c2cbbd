"""Run cases on this machine's GPU, with the vLLM of the interpreter that runs this file; several at a time.

    python -m tests.agreement.run_on_gpu FOLDER [WORKERS [PART]]     from the root of this repository

Writes the pairs and ``results.jsonl`` to FOLDER, a line a case as run_mutants.py prints it; PART is of the names to
run. What is there already is left out. The engine's interpreter needs what specfix itself needs, too.

Each worker imports vLLM and forks a child a case, before anything touches the GPU.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .bench import write
from .gpu_cases import cases

ENVIRONMENT = {"VLLM_USE_FLASHINFER_SAMPLER": "0"}  # it is compiled where it runs
PRELOADED = (
    "vllm.entrypoints.llm",
    "vllm.model_executor.models.llama_eagle3",
    "vllm.v1.spec_decode.eagle",
    "vllm.v1.worker.gpu_model_runner",
    "vllm.v1.worker.gpu_worker",
)
# an executor without a process of its own is what a GPU has for one rank anyway
BENCH = ("skip_tokenizer_init", "disable_log_stats")


def main(folder: Path, workers: int, part: str) -> None:
    """Run what is not there yet."""
    results = folder / "results.jsonl"
    done = {json.loads(line)["name"] for line in results.read_text().splitlines()} if results.exists() else set()
    todo = {name: case for name, case in cases().items() if part in name and name not in done}
    (folder / "weights").mkdir(parents=True, exist_ok=True)
    jobs = [
        write(name, case, folder / str(number), folder / "weights") for number, (name, case) in enumerate(todo.items())
    ]
    processes = []
    for number in range(workers):
        file = folder / f"jobs-{number}.json"
        file.write_text(json.dumps(jobs[number::workers]))
        command = [sys.executable, "-m", __spec__.name, "--worker", str(file), str(results)]
        processes.append(subprocess.Popen(command))
    for process in processes:
        process.wait()


def work(jobs: Path, results: Path) -> None:
    """What a worker does: one line to ``results`` for each of its jobs."""
    run_mutants: Any = importlib.import_module("tests.agreement.run_mutants")
    run_pairs = run_mutants.run_pairs
    os.environ |= run_pairs.ENVIRONMENT | ENVIRONMENT
    run_mutants.BENCH, run_mutants.MEMORY, run_pairs.LIMIT_S = BENCH, None, 150
    for name in PRELOADED:
        importlib.import_module(name)
    run_pairs.gc.freeze()
    for job in json.loads(jobs.read_text()):
        result = run_mutants.finished(job, run_pairs.run_in_child(job, run_mutants.run))
        with results.open("a") as file:  # a short line is appended whole
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(*map(Path, sys.argv[2:]))
    else:
        parser = argparse.ArgumentParser(description="Run cases on this machine's GPU.")
        parser.add_argument("folder", type=Path)
        parser.add_argument("workers", type=int, nargs="?", default=4)
        parser.add_argument("part", nargs="?", default="")
        main(**vars(parser.parse_args()))
