"""How many checks a process does once it is warm: all rules, each on a pair that is like no other.

    python benchmarks/warm.py [PAIRS]

The pairs differ in what the rules read: lengths, layers, widths, RoPE, vocabularies, aux layers, names of files. They
are checked as they stand in memory, without the files. Prints the checks a second of CPU time for each tenth of the
run, and the memory after it: a run must not slow down, nor keep what it has seen. A loop of plain Python before and
after says how fast the machine is meanwhile.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from specfix.checking import Case, gather
from specfix.deployment import Deployment
from specfix.deployment.config import Config

EXAMPLES = Path(__file__).parents[1] / "examples"
PARTS = 10


def pairs(case: Case) -> Iterator[Deployment]:
    """Deployments that differ from each other in two configs, and in where these are."""
    made = case.deployment
    assert made.draft is not None
    numbers = random.Random(0)
    for number in count():
        layers, width, theta = numbers.randrange(12, 128), 128 * numbers.randrange(8, 96), numbers.uniform(1e4, 8e6)
        both = {"hidden_size": width, "num_attention_heads": width // 128, "rope_theta": theta}
        target: dict[str, Any] = {
            **made.target.config.values,
            **both,
            "max_position_embeddings": numbers.randrange(2048, 262_144),
            "num_hidden_layers": layers,
        }
        draft: dict[str, Any] = {
            **made.draft.config.values,
            **both,
            "max_position_embeddings": numbers.randrange(1024, 40_960),
            "eagle_aux_hidden_state_layer_ids": [2, layers // 2, layers - 3],
        }
        if numbers.random() < 0.75:
            draft["draft_vocab_size"] = 64 * numbers.randrange(250, 1000)
        yield replace(
            made,
            target=replace(
                made.target, reference=f"target-{number}", config=Config(target, f"target-{number}/config.json")
            ),
            draft=replace(made.draft, reference=f"draft-{number}", config=Config(draft, f"draft-{number}/config.json")),
        )


def pace() -> float:
    """Seconds that ten million steps of an empty loop take."""
    start = time.process_time()
    for _ in range(10_000_000):
        pass
    return time.process_time() - start


def memory() -> float:
    """The most memory that the process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(wanted: int) -> None:
    case = gather(
        EXAMPLES / "llama-3.1-8b-instruct",
        EXAMPLES / "eagle3-llama-3.1-8b",
        method="eagle3",
        num_speculative_tokens=5,
        max_model_len=8192,
        engine="vllm==0.26.0",
        hardware="h200",
    )
    made = pairs(case)
    codes: set[str] = set()
    for _ in range(20):
        case.check(next(made))
    before, part = pace(), wanted // PARTS
    for number in range(PARTS):
        taken = 0.0
        for deployment in (next(made) for _ in range(part)):
            start = time.process_time()
            report = case.check(deployment)
            taken += time.process_time() - start
            codes |= {found.code for found in report.findings}
        print(f"{(number + 1) * part:>7} pairs: {part / taken:>6.0f} checks a second, {memory():.0f} MB")
    print(f"rules: {len(case.chosen.rules)}; found: {', '.join(sorted(codes))}")
    print(f"ten million steps of an empty loop: {before:.2f} s before, {pace():.2f} s after")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
