"""A case on disk, and what a real engine does with it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specfix.engines.transformers import named_in
from tests.engine.engines import engine
from tests.engine.pairs import save

from .bases import Case, Tensors

RUNNER = Path(__file__).with_name("run_mutants.py")


def write(name: str, case: Case, folder: Path, weights: Path) -> dict[str, Any]:
    """Write the pair into ``folder``, and give the job for run_mutants.py.

    Files of weights are kept in ``weights`` (same file system) and linked, since most cases share theirs.
    """
    for side, config, tensors in (
        ("target", case.target, case.target_weights),
        ("draft", case.draft, case.draft_weights),
    ):
        model = folder / side
        model.mkdir(parents=True)
        (model / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        os.link(stored(tensors, weights), model / "model.safetensors")
    if case.generation is not None:
        (folder / "target" / "generation_config.json").write_text(json.dumps(case.generation, indent=2) + "\n")
    return {
        "name": name,
        "target": str(folder / "target"),
        "draft": str(folder / "draft"),
        "serve": case.serve,
        "speculative": case.speculative,
        "env": case.env,
    }


@contextmanager
def plain_folder() -> Iterator[Path]:
    """A temporary folder whose path names no model type: of a config without one, engines look for it there."""
    with tempfile.TemporaryDirectory() as name:
        if named_in(name):
            with plain_folder() as other:
                yield other
        else:
            yield Path(name)


def stored(tensors: Tensors, weights: Path) -> Path:
    """The file in ``weights`` that holds these tensors."""
    digest = hashlib.sha256()
    for name, (dtype, shape, data) in tensors.items():
        digest.update(f"{name} {dtype} {shape} ".encode())
        digest.update(data)
    path = weights / f"{digest.hexdigest()[:20]}.safetensors"
    if not path.exists():
        save(tensors, path)
    return path


def run(version: str, cases: Mapping[str, Case], folder: Path) -> Iterator[dict[str, Any]]:
    """What the release does with each case, as soon as it is known; the first line describes the engine."""
    release = engine(version)
    jobs = [
        write(name, case, folder / str(number), folder / "weights") for number, (name, case) in enumerate(cases.items())
    ]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    with (
        (folder / "engine.log").open("ab") as log,
        subprocess.Popen(
            [release.python, RUNNER, folder / "jobs.json"], env=release.env, stdout=subprocess.PIPE, stderr=log
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line.replace(str(folder).encode(), b""))
    if process.returncode:
        raise RuntimeError((folder / "engine.log").read_text(errors="replace")[-4000:])
