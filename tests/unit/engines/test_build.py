"""Making the shipped facts, from a folder of sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.engines.build import main
from specfix.engines.find import DATA, find_engine, shipped_versions
from specfix.engines.readers import NEEDED
from specfix.engines.serial import dump, load


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for file in NEEDED:
        path = tmp_path / "sources/1.0/vllm" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path / "sources"


def test_facts_are_written_and_checked(sources: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["1.0", "--from", str(sources), "--out", str(tmp_path)]
    assert main(arguments) == 0
    engine = load((tmp_path / "vllm-1.0.json").read_text("utf-8"))
    assert (engine.version, engine.source) == ("1.0", "shipped")
    assert main([*arguments, "--check"]) == 0
    (sources / "1.0/vllm/envs.py").write_text("VLLM_USE_V2_MODEL_RUNNER: bool = False")
    worker = sources / "1.0/vllm/v1/worker/gpu_worker.py"
    worker.write_text("v2 = envs.VLLM_USE_V2_MODEL_RUNNER")
    capsys.readouterr()
    assert main([*arguments, "--check"]) == 1
    assert capsys.readouterr().out == "vllm 1.0: runner.defaults, runner.steps\n"
    (tmp_path / "vllm-1.0.json").write_text("{")
    assert main([*arguments, "--check"]) == 1


def test_shipped_files_are_as_dumped_and_small() -> None:
    assert len(shipped_versions()) >= 11
    for version in shipped_versions():
        file = DATA / f"vllm-{version}.json"
        text = file.read_text("utf-8")
        assert text == dump(find_engine(version))
        assert len(text) < 90_000


def test_every_fact_that_is_not_known_has_a_reason() -> None:
    for version in shipped_versions():
        engine = find_engine(version)
        assert all(reason for reason in engine.unknown.values())
