"""specfix/report-v1: keys, their order, and plain values."""

from __future__ import annotations

import json
from typing import Any

from specfix import __version__
from specfix.checker.report import Report, Skipped
from specfix.report.json_ import render

from .sample import ABSENT, POSITIONS, report

FINDING = {
    "code": "POS001",
    "name": "draft-position-table",
    "severity": "error",
    "phase": "silent",
    "confidence": "certain",
    "message": "The draft has 2048 positions, and sequences of up to 8192 tokens are served.",
    "location": {"file": "models/draft/config.json", "pointer": "/max_position_embeddings", "line": 4},
    "related": [
        {"file": "models/target/config.json", "pointer": "/max_position_embeddings", "line": 3},
        {"file": "command line", "pointer": "--max-model-len", "line": None},
    ],
    "repair": {
        "safety": "safe",
        "summary": "set max_position_embeddings to 8192 in the draft",
        "surfaces": ["draft_config"],
    },
    "evidence": ["vllm-project/vllm#48894", "vllm-project/vllm#49343"],
    "help": "specfix explain POS001",
}


def read(found: Report) -> Any:
    text = render(found)
    assert text.endswith("}\n")
    return json.loads(text)


def test_the_schema_to_the_letter() -> None:
    found = read(report(POSITIONS, skipped=(Skipped("WGT001", "a safetensors header of models/draft"),)))
    assert list(found) == ["schema", "version", "deployment", "verdict", "findings", "skipped", "let_pass"]
    assert (found["schema"], found["version"], found["verdict"]) == ("specfix/report-v1", __version__, "fail")
    assert found["findings"] == [FINDING]
    assert list(found["findings"][0]) == list(FINDING)
    assert found["skipped"] == [{"code": "WGT001", "reason": "a safetensors header of models/draft"}]


def test_the_deployment() -> None:
    deployment = read(report())["deployment"]
    assert list(deployment) == ["target", "draft", "method", "engine", "hardware", "serving", "assumptions"]
    assert (deployment["target"], deployment["draft"]) == ("models/target", "models/draft")
    assert deployment["method"] == "eagle3"
    assert deployment["engine"] == {"name": "vllm", "version": "0.26.0", "source": "shipped"}
    assert deployment["hardware"]["name"] == "h200"
    assert deployment["hardware"]["compute_capability"] == [9, 0]
    assert deployment["serving"]["max_model_len"] == 8192
    assert deployment["serving"]["block_size"] is None
    assert deployment["serving"]["env"] == {"CUDA_VISIBLE_DEVICES": ""}


def test_what_is_absent_is_null() -> None:
    found = read(report(ABSENT, draft=None, hardware=None))
    assert found["deployment"]["draft"] is None
    assert found["deployment"]["hardware"] is None
    assert found["findings"][0]["repair"] is None
    assert found["findings"][0]["location"]["line"] is None
