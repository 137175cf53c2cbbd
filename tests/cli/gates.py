"""What the tests of the gate share: launches, options, and what a run said."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from .conftest import DRAFT, TARGET, Done

PAIR = (TARGET, DRAFT, "--hardware", "h200", "--max-model-len", "8192")
POS = (*PAIR, "--engine", "vllm==0.26.0", "--select", "POS001")
WHERE = ("--hardware", "h200", "--select", "POS001")
WHERE_26 = ("--engine", "vllm==0.26.0", *WHERE)
IGNORE = '[[ignore]]\ncode = "POS001"\nreason = "prompts stay short here"\n'
SHUT = "the folder cannot be looked into: Permission denied"


def launch(length: int, more: str = "") -> str:
    speculative = json.dumps({"method": "eagle3", "model": DRAFT, "num_speculative_tokens": 3})
    return f"model: {TARGET}\nmax-model-len: {length}\nspeculative-config: {speculative}\n{more}"


def noted(done: Done) -> list[str]:
    """The remarks of a run, each in one line, in their order."""
    parts = " ".join(done.stdout.split()).split("note: ")[1:]
    return [part[: part.index(")") + 1] for part in parts]


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user who may not look everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
