"""Hand-made reports: small, in our own words, with every kind of place that a finding can have."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from specfix.checker.finding import Finding, Repair
from specfix.checker.report import Report, Reported, Skipped
from specfix.deployment import Deployment, Draft, Hardware, Location, Serving, Target
from specfix.deployment.config import Config
from specfix.engines import Engine

DRAFT = """{
  "architectures": ["LlamaForCausalLM"],
  "hidden_size": 4096,
  "max_position_embeddings": 2048,
  "eagle_config": {"ids": [2, 16, 60]},
  "vocab_size": 128256
}
"""
TARGET = """{
  "num_hidden_layers": 32,
  "max_position_embeddings": 131072
}
"""


def config(file: str, text: str) -> Config:
    return Config(json.loads(text), file, text)


def engine() -> Engine:
    """A release of which a report needs to know the name alone."""
    unread: dict[str, Any] = {field.name: None for field in fields(Engine)}
    return Engine(**unread | {"name": "vllm", "version": "0.26.0", "source": "shipped"})


def deployment(**changes: Any) -> Deployment:
    given: dict[str, Any] = {
        "target": Target("models/target", config("models/target/config.json", TARGET)),
        "draft": Draft("models/draft", config("models/draft/config.json", DRAFT)),
        "serving": Serving(
            method="eagle3", num_speculative_tokens=5, max_model_len=8192, env={"CUDA_VISIBLE_DEVICES": ""}
        ),
        "hardware": Hardware("h200", "cuda", compute_capability=(9, 0)),
    }
    return Deployment(**given | changes)


POSITIONS = Reported(
    "POS001",
    "draft-position-table",
    "error",
    Finding(
        "The draft has 2048 positions, and sequences of up to 8192 tokens are served.",
        Location("models/draft/config.json", "/max_position_embeddings", 4),
        "silent",
        related=(
            Location("models/target/config.json", "/max_position_embeddings", 3),
            Location("command line", "--max-model-len"),
        ),
        repair=Repair("safe", "set max_position_embeddings to 8192 in the draft", ("draft_config",)),
    ),
    ("vllm-project/vllm#48894", "vllm-project/vllm#49343"),
)
TRITON = Reported(
    "HWR002",
    "triton-without-a-driver",
    "warning",
    Finding(
        "CUDA_VISIBLE_DEVICES is the empty string, so Triton counts as there.",
        Location("environment", "CUDA_VISIBLE_DEVICES"),
        "runtime",
        "likely",
        related=(Location("hardware", "compute_capability"),),
        repair=Repair("unsafe", "unset CUDA_VISIBLE_DEVICES", ("env",)),
    ),
    (),
)
ABSENT = Reported(
    "AUX001",
    "aux-layers-guessed",
    "note",
    Finding(
        "The draft names no layers: the engine guesses 2, 16 and 29.",
        Location("models/draft/config.json", "/eagle_aux_hidden_state_layer_ids"),
        "silent",
    ),
    (),
)


def report(*findings: Reported, skipped: tuple[Skipped, ...] = (), **changes: Any) -> Report:
    return Report(deployment(**changes), engine(), findings, skipped)


def at(pointer: str, line: int, message: str = "Wrong.") -> Reported:
    """An error at a line of the draft's config."""
    finding = Finding(message, Location("models/draft/config.json", pointer, line), "load")
    return Reported("NUM001", "numbers-disagree", "error", finding, ())
