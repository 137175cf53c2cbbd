"""Run the committed mutations on a real engine, and keep what came of them.

    python -m tests.agreement.collect VERSION [LIMIT]

Appends to results-VERSION.jsonl, a line a mutation, and leaves out what is there already: a run that was stopped goes
on. LIMIT is how many to run at most.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .bench import plain_folder, run
from .mutations import drawn

HERE = Path(__file__).parent
BATCH = 60  # an engine is imported anew for so many


def results(name: str) -> dict[str, dict[str, Any]]:
    """What is kept of a run (a release on the bench's CPU, ``0.26.0 on an H200``), by the case's name."""
    path = results_file(name)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {result["name"]: result for result in map(json.loads, lines)}


def results_file(name: str) -> Path:
    return HERE / f"results-{name.replace(' on an ', '-').lower()}.jsonl"


def kept(result: dict[str, Any]) -> dict[str, Any]:
    """The part of a result that does not differ from run to run, and empty values left out."""
    keys = ("name", "outcome", "lengths", "error", "message", "moment", "where")
    return {key: result[key] for key in keys if result.get(key)}


def collect(version: str, limit: int | None = None) -> None:
    """Run what is not there yet, the first mutation of each field before the second of any."""
    seen = results(version)
    places: dict[str, int] = {}
    ordered = []
    for mutation in drawn().values():
        places[mutation.place] = places.get(mutation.place, 0) + 1
        ordered.append((places[mutation.place], mutation))
    ordered.sort(key=lambda pair: pair[0])
    todo = [mutation for _, mutation in ordered if mutation.name not in seen][:limit]
    for start in range(0, len(todo), BATCH):
        cases = {mutation.name: mutation.case() for mutation in todo[start : start + BATCH]}
        with plain_folder() as folder, results_file(version).open("a", encoding="utf-8") as file:
            for result in run(version, cases, folder):
                if "outcome" in result:
                    file.write(json.dumps(kept(result)) + "\n")
                    file.flush()
        print(f"{version}: {min(start + BATCH, len(todo))} of {len(todo)}", flush=True)


if __name__ == "__main__":
    collect(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
