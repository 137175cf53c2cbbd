"""The rules on weights over what trainers really save (tests/headers): silent, but for what is said here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specfix.checker.registry import load_rules
from specfix.checker.run import Chosen, run
from specfix.deployment import Serving
from specfix.deployment.load import load_deployment
from specfix.engines.find import find_engine
from specfix.facts import PROVIDERS
from specfix.facts.class_defaults import with_class_defaults
from specfix.testing import write_header

ROOT = Path(__file__).parents[3]
HEADERS = sorted((ROOT / "tests" / "headers").glob("*.json"))
LLAMA, QWEN = "examples/llama-3.1-8b-instruct", "tests/bases/qwen3-8b"
OLD_LLAMA = {"vocab_size": 32000, "intermediate_size": 11008, "num_key_value_heads": 32}
SMALL_QWEN = {"hidden_size": 2048, "num_hidden_layers": 48, "num_key_value_heads": 4}

# by header and release, what is found and is true
FOUND = {
    # where its config says nothing, EAGLE gives fc a bias, for which no release has a place
    ("eagle-llama2", ""): {"WGT008"},
    # no key of it names the token that stands for what is to be drafted
    ("specforge-qwen3-8b-peagle", ""): {"AUX005"},
}
# whose class the release does not know: a rule on methods speaks of them
UNKNOWN = {
    ("specforge-qwen3-8b-dspark", "0.26.0"),
    ("specforge-qwen3-8b-peagle", "0.26.0"),
    ("specforge-qwen3-8b-peagle", "0.32.0"),
}

# rules on the target's own weights, of which there is no header
TARGETS = {"WGT016", "WGT017", "WGT018", "WGT019", "WGT020"}


def target_of(name: str) -> tuple[str, dict[str, int]]:
    """The base of the target, and what else is said of it."""
    if "llama2" in name:
        return LLAMA, OLD_LLAMA
    if "30b-a3b" in name:
        return QWEN, SMALL_QWEN
    return (LLAMA if "llama" in name else QWEN), {}


def method_of(name: str) -> str:
    if name in ("eagle-llama2", "eagle-llama3"):
        return "eagle"
    return next(method for method in ("dflash", "dspark", "eagle3") if method in name or method == "eagle3")


@pytest.mark.parametrize("release", ["0.26.0", "0.32.0"])
@pytest.mark.parametrize("file", HEADERS, ids=lambda file: file.stem)
def test_header(file: Path, release: str, tmp_path: Path) -> None:
    found, skipped = codes(file, release, tmp_path)
    assert found == FOUND.get((file.stem, release), FOUND.get((file.stem, ""), set()))
    assert not skipped - TARGETS or (file.stem, release) in UNKNOWN


def codes(file: Path, release: str, folder: Path) -> tuple[set[str], set[str]]:
    """Codes of errors and warnings, and of rules that were skipped."""
    given = json.loads(file.read_text("utf-8"))
    base, more = target_of(file.stem)
    for name, values in (
        ("target", json.loads((ROOT / base / "config.json").read_text()) | more),
        ("draft", given["config"]),
    ):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(values))
    tensors = {key: {"dtype": kind, "shape": shape} for key, (kind, shape) in given["tensors"].items()}
    write_header(folder / "draft" / "model.safetensors", tensors)
    method = method_of(file.stem)
    speculative = {"parallel_drafting": True} if "peagle" in file.stem else {}
    serving = Serving(method=method, num_speculative_tokens=3, max_model_len=2048, speculative=speculative)
    deployment = load_deployment(str(folder / "target"), str(folder / "draft"), serving, "h200")
    engine = find_engine(f"vllm {release}")
    report = run(with_class_defaults(deployment, engine), engine, Chosen(load_rules(), ("WGT", "AUX")), PROVIDERS)
    for one in report.findings:
        print(one.code, one.severity, one.finding.message)
    for skip in report.skipped:
        print("skip", skip)
    found = {one.code for one in report.findings if one.severity != "note"}
    return found, {skip.code for skip in report.skipped}
