"""What `specfix check` says of a pair, held against what a real engine does with it.

    pytest -m engine tests/engine                    every release; with -k 0.26.0 one of them

The first run builds the engines (see engines.py). Each release is started once and runs every case in a
forked child, greedy and sampled; meanwhile the checker is asked about the same cases through its command
line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .chosen import releases
from .engines import BASES, Engine, engine
from .pairs import Folders, Pair, write_pair

pytestmark = pytest.mark.engine

AUX_IDS: dict[str, tuple[int, ...] | None] = {
    "absent": None,
    "good": (2, 4, 5),
    "repeated": (2, 4, 4),
    "out-of-range": (2, 4, 60),
    "all-layers": (2, 4, 8),  # the state after the last of 8 layers
    "negative": (-1, 4, 5),
}
PAIRS = {
    f"{name}/{positions}": Pair(draft_positions=positions, aux_ids=ids)
    for positions in (1024, 64)
    for name, ids in AUX_IDS.items()
} | {f"six-layers/{positions}": Pair(draft_positions=positions, target_layers=6) for positions in (1024, 64)}
UNINITIALISED = "HWR005"
DISAGREES = "!"  # the mark of a row of the table
SAMPLING = {"greedy": {"temperature": 0.0}, "sampled": {"temperature": 0.8, "top_k": 20, "top_p": 0.9}}
LENGTHS = (20, 100)  # tokens of a prompt: within a draft's table of 64 rows, then beyond it

# The phase of an error finding -> the outcome it foretells, in the order in which an engine comes to them.
FORETOLD = {
    "config": "refused",
    "load": "refused",
    "warmup": "refused",
    "runtime": "died",
    "silent": "silent",
}


@dataclass(frozen=True)
class Case:
    """One pair, run one way."""

    name: str
    folders: Folders
    sampling: str


@dataclass(frozen=True)
class Prediction:
    """What the checker says will happen, and which errors (or what else) it says so by.

    ``or_else`` is the other outcome of a finding that names two: parameters that are uninitialised memory end the
    engine, or are sampled with.
    """

    outcome: str
    why: str
    or_else: str | None = None


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Every pair on disk, greedy and sampled. No folder is named after a method: vLLM guesses by it."""
    root = tmp_path_factory.mktemp("pairs")
    written = {name: write_pair(pair, root / name, root / "weights") for name, pair in PAIRS.items()}
    return [Case(name, folders, sampling) for name, folders in written.items() for sampling in SAMPLING]


@pytest.mark.parametrize("version", releases(BASES, "0.21.0", "0.24.0", "0.32.0"))
def test_check_foretells_what_the_engine_does(
    version: str, cases: Sequence[Case], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The outcome of every case is the one that the report's errors foretell."""
    release = engine(version)
    with ThreadPoolExecutor(max_workers=2) as pool:
        # The engine keeps one core busy, so the checks cost no time of their own where there is another.
        run = pool.submit(run_engine, release, cases, tmp_path)
        predictions = list(pool.map(lambda case: predict(version, case), cases))
        facts, results = run.result()

    table = list(rows(cases, results, predictions))
    wrong = [row for row in table if row.startswith(DISAGREES)]
    with capsys.disabled():
        print(f"\nvLLM {facts}", *table, f"{len(wrong)} of {len(table)} disagree", *wrong, sep="\n")

    # What the bench itself relies on: the check is told "a CPU host where Triton is not active", and a draft
    # that is heard at all has every token accepted.
    assert facts["engine"] == f"{version}+cpu"
    assert facts["triton_active"] is False
    for result in results:
        if result["outcome"] == "fine":
            assert all(c["accepted"] == c["drafted"] > 0 for c in result["lengths"].values()), result

    assert not wrong, "\n".join(["the check and the engine disagree:", *wrong])


def run_engine(release: Engine, cases: Sequence[Case], folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Facts about the engine, and what it did with each case, in the order of the cases."""
    jobs = [
        {
            "name": f"{case.name} {case.sampling}",
            "target": str(case.folders.target),
            "draft": str(case.folders.draft),
            "sampling": SAMPLING[case.sampling],
            "lengths": LENGTHS,
        }
        for case in cases
    ]
    lines = release.run("run_pairs.py", jobs, folder)
    return lines[0], lines[1:]


def predict(version: str, case: Case) -> Prediction:
    """Ask the checker about a case, through its command line."""
    command = [
        *(sys.executable, "-m", "specfix", "check", str(case.folders.target), str(case.folders.draft)),
        *("--method", "eagle3", "--num-speculative-tokens", "3", "--max-model-len", "1024"),
        *("--dtype", "bfloat16", "--engine", f"vllm=={version}", "--hardware", "cpu", "--enforce-eager"),
        *(["--greedy"] if case.sampling == "greedy" else []),
        *("--format", "json"),
    ]
    # Not one VLLM_ variable of whoever runs the tests: the engine does not see them either.
    env = {name: value for name, value in os.environ.items() if not name.startswith("VLLM_")}
    ran = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if ran.returncode not in {0, 1}:
        return Prediction("unchecked", f"exit status {ran.returncode}: {ran.stderr.strip()[-200:]}")
    return foretold(json.loads(ran.stdout))


def foretold(report: dict[str, Any]) -> Prediction:
    """The outcome that a report means: the first phase that has an error is as far as the engine comes."""
    errors = [finding for finding in report["findings"] if finding["severity"] == "error"]
    phases = {finding["phase"] for finding in errors}
    codes = " ".join(sorted({f"{finding['code']}({finding['phase']})" for finding in errors}))
    outcome = next((means for phase, means in FORETOLD.items() if phase in phases), "fine")
    skipped = " ".join(sorted(skip["code"] for skip in report["skipped"]))
    deciding = {finding["code"] for finding in errors if FORETOLD[finding["phase"]] == outcome}
    or_else = "silent" if deciding == {UNINITIALISED} else None
    return Prediction(outcome, codes + (f" skipped: {skipped}" if skipped else ""), or_else)


def rows(cases: Sequence[Case], results: Sequence[dict[str, Any]], predictions: Sequence[Prediction]) -> Iterator[str]:
    """The table, a line a case: the engine's outcome, the check's, its codes, and the engine's words."""
    for case, result, said in zip(cases, results, predictions, strict=True):
        mark = " " if result["outcome"] in {said.outcome, said.or_else} else DISAGREES
        words = ": ".join(result[key] for key in ("moment", "message") if key in result)
        columns = (f"{case.name:<17} {case.sampling:<7}", f"{result['outcome']:<7}", f"{said.outcome:<7}")
        yield f"{mark} " + " | ".join((*columns, said.why, words[:110]))
