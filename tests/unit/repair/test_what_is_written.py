"""What the plan judges is what is written: a draft within its target, a method left open or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import specfix
from specfix.repairing import prepare_launch, write
from specfix.testing import write_model

from .pairs import ROOT

BASES = (ROOT / "examples", ROOT / "tests/bases")
QUANTISED = {
    "base": "qwen3.5-27b",
    "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "mtp.layers.0*"]},
    "tensors": {"mtp.fc.weight": [16, 32], "mtp.layers.0.mlp.down_proj.weight": [16, 32]},
}


def codes(found: Any) -> list[str]:
    return [each.code for each in found]


def test_a_draft_within_its_target_goes_along(tmp_path: Path) -> None:
    target = write_model(tmp_path / "target", QUANTISED, BASES)
    options: dict[str, Any] = {"method": "mtp", "engine": "0.18.0", "hardware": "mi300x", "num_speculative_tokens": 1}
    fixed = specfix.fix(target, out=tmp_path / "out", unsafe=True, **options)
    assert codes(fixed.report.findings) == ["QNT001"] and fixed.written
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"target"}
    assert not (tmp_path / "out/draft").exists()
    given = json.loads((tmp_path / "out/overrides.json").read_text())
    assert (given["target"], given["draft"]) == (str(tmp_path / "out/target"), None)
    assert codes(specfix.check(given["target"], **options).findings) == codes(fixed.plan.after.findings) == []


@pytest.mark.parametrize("method", [None, "eagle3"])
def test_a_method_that_is_still_to_be_written_counts_as_named(tmp_path: Path, method: str | None) -> None:
    """Left to itself this release would take such a draft, whose path names no method, for a model, and refuse it."""
    bases = {"target": "llama-3.1-8b-instruct", "draft": "eagle3-llama-3.1-8b"}
    target, draft = (write_model(tmp_path / side, {"base": base}, BASES) for side, base in bases.items())
    options: dict[str, Any] = {"engine": "0.10.2", "hardware": "h200", "num_speculative_tokens": 3}
    report = specfix.check(target, draft, method=method, max_model_len=2048, **options)
    assert codes(report.findings) == ["AUX001"]
    fixed = specfix.fix(target, draft, out=tmp_path / "out", method=method, max_model_len=2048, **options)
    assert codes(fixed.plan.after.findings) == ["AUX001"]
    assert json.loads((tmp_path / "out/overrides.json").read_text())["speculative_config"]["method"] == "eagle3"


@pytest.mark.parametrize(("method", "right"), [('"eagel3"', '"eagle3"'), ("7", "eagle3")])
def test_a_method_that_is_refused_gives_way_to_the_right_one(tmp_path: Path, method: str, right: str) -> None:
    sides = {"target": "llama-3.1-8b-instruct", "draft": "eagle3-llama-3.1-8b"}
    target, draft = (write_model(tmp_path / side, {"base": base}, BASES) for side, base in sides.items())
    config = f'{{"method": {method}, "model": "{draft}", "num_speculative_tokens": 3}}'
    file = tmp_path / "serve.yaml"
    file.write_text(f"model: {target}\nmax-model-len: 2048\nspeculative-config: {config}\n")
    fixed = write(prepare_launch(file, out=tmp_path / "out", engine="0.26.0", hardware="h200"))
    assert {"CFG006", "MTH010"} <= set(codes(fixed.report.findings))
    assert not {"CFG006", "MTH010"} & set(codes(fixed.plan.after.findings))
    wanted = file.read_text().replace(f'"method": {method}', f'"method": {right}')
    assert (tmp_path / "out/serve.yaml").read_text() == wanted


def test_a_draft_that_leaves_its_target_is_judged_as_one_of_its_own(tmp_path: Path) -> None:
    target = write_model(tmp_path / "target", {"base": "qwen3.5-27b"}, BASES)
    yarn = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 262144}
    options: dict[str, Any] = {"method": "mtp", "num_speculative_tokens": 1, "max_model_len": 524288}
    options["flags"] = {"hf_overrides": {"text_config": {"max_position_embeddings": 524288, "rope_parameters": yarn}}}
    fixed = specfix.fix(target, out=tmp_path / "out", unsafe=True, engine="0.17.0", hardware="h200", **options)
    assert codes(fixed.report.findings) == ["POS003"] and fixed.written
    assert (tmp_path / "out/draft/config.json").is_file() and not (tmp_path / "out/target").exists()
    assert {change.code for change in fixed.plan.changes.values()} == {"POS003", "KVC003"}


def test_a_wrong_value_that_nobody_reads_stays_unread(tmp_path: Path) -> None:
    target = write_model(tmp_path / "target", {"base": "llama-3.1-8b-instruct"}, BASES)
    given = {"base": "eagle3-llama-3.1-8b", "max_position_embeddings": 2047, "swa_rope_theta": ""}
    draft = write_model(tmp_path / "draft", given, BASES)
    options: dict[str, Any] = {"method": "eagle3", "num_speculative_tokens": 5, "max_model_len": 2048}
    fixed = specfix.fix(target, draft, out=tmp_path / "out", engine="0.26.0", hardware="h200", **options)
    assert codes(fixed.report.findings) == ["POS001", "AUX001"]
    assert codes(fixed.plan.after.findings) == ["AUX001"]
    assert '"swa_rope_theta": ""' in (tmp_path / "out/draft/config.json").read_text()


def test_a_draft_that_moves_is_named_with_its_method(tmp_path: Path) -> None:
    """The file names one that is refused, and the release would take the repaired draft for a whole model."""
    sides = {"target": "llama-3.1-8b-instruct", "draft": "eagle3-llama-3.1-8b"}
    target, draft = (write_model(tmp_path / side, {"base": base}, BASES) for side, base in sides.items())
    file = tmp_path / "serve.yaml"
    config = f'{{"method": "eagel3", "model": "{draft}", "num_speculative_tokens": 5, "max_model_len": 8192}}'
    file.write_text(f"model: {target}\nmax-model-len: 8192\nspeculative-config: '{config}'\n")
    fixed = write(prepare_launch(file, out=tmp_path / "out", engine="0.16.0", hardware="h200"))
    assert {"CFG003", "CFG006"} <= set(codes(fixed.report.findings))
    assert codes(fixed.plan.after.findings) == ["AUX001"]
    assert '"method": "eagle3"' in (tmp_path / "out/serve.yaml").read_text()


@pytest.mark.parametrize("given", ["1", "[1]", "'no JSON'"])
def test_a_config_of_the_users_own_that_is_no_object(tmp_path: Path, given: str) -> None:
    sides = {"target": "llama-3.1-8b-instruct", "draft": "eagle3-llama-3.1-8b"}
    target, draft = (write_model(tmp_path / side, {"base": base}, BASES) for side, base in sides.items())
    file = tmp_path / "run.sh"
    config = f'{{"method": "eagle3", "model": "{draft}", "num_speculative_tokens": 5}}'
    file.write_text(
        f"vllm serve {target} --max-model-len 2048 --additional-config {given} --speculative-config '{config}'\n"
    )
    fixed = write(prepare_launch(file, out=tmp_path / "out", engine="0.32.0", hardware="h200"))
    assert (tmp_path / "out/run.sh").read_text() == file.read_text() and not fixed.plan.changes
