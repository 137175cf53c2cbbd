"""What an imported engine says of itself, to hold beside what was read from its source.

Each `ask/<kind>.py` runs in the engine's own environment, where neither specfix nor pytest is; it may import vllm,
and its last line of output is one JSON object. The tests of a kind are in `tests/engine/test_truth_<kind>.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from specfix.engines import Engine
from specfix.engines.cache import read_cached

from .engines import engine

VERSIONS = ("0.21.0", "0.26.0", "0.32.0")
GATE = ("0.21.0", "0.32.0")  # those that are asked before every change
MINUTES = 10


@cache
def ask(version: str, kind: str) -> Any:
    """What the engine answers to `ask/<kind>.py`."""
    found = engine(version)
    script = Path(__file__).with_name("ask") / f"{kind}.py"
    done = subprocess.run(
        [found.python, str(script)], env=found.env, capture_output=True, text=True, timeout=MINUTES * 60, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{script.name} on {version} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


@cache
def read(version: str) -> Engine:
    """What specfix reads of the very package that answers."""
    return read_cached(package(version), version, version)


def package(version: str) -> Path:
    """The package folder that the engine's interpreter imports."""
    found = engine(version)
    overlay = found.env.get("PYTHONPATH")
    sites = [Path(part) for part in overlay.split(os.pathsep)] if overlay else []
    sites += (found.python.parent.parent / "lib").glob("python3.*/site-packages")
    return next(site / "vllm" for site in sites if (site / "vllm" / "__init__.py").is_file())
