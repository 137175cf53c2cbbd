"""The committed word of vLLM's config stage on real pairs, against the engine. It has no torchvision here, so that it
says nothing of vision models."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from .engines import engine
from .truth import MINUTES

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
VERSION = "0.32.0"
COMMITTED = ROOT / "tests" / "good_pairs" / "reference.jsonl"


def test_the_config_stage_says_what_is_committed() -> None:
    found = engine(VERSION)
    command = [str(found.python), "-m", "tests.good_pairs.reference"]
    done = subprocess.run(
        command, cwd=ROOT, env=found.env, capture_output=True, text=True, timeout=MINUTES * 60, check=True
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    committed = [json.loads(line) for line in COMMITTED.read_text("utf-8").splitlines()]
    decided = [(one, other) for one, other in zip(said, committed, strict=True) if one["verdict"] != "undecided"]
    assert all(one == other for one, other in decided)
    print(f"\n{VERSION}: {len(decided)} of {len(said)} pairs asked again, the same is said of each")
    assert len(decided) >= 60
