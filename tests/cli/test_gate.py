"""The gate as a whole: many launches in one run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .conftest import Run
from .gates import PAIR, WHERE, launch


def test_what_is_wrong_for_all_is_said_once(specfix: Run, project: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (project / "deploy" / name).write_text(launch(1024))
    for wrong in (("--engine", "vllm==9.9"), ("--hardware", "toaster"), ("--select", "XYZ")):
        done = specfix("gate", ".", *wrong)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("command", [("gate", "."), ("gate", ".."), ("check", "--launch", "."), ("check", *PAIR)])
def test_a_working_directory_that_is_gone_is_no_pass(
    specfix: Run, project: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Neither the files nor the settings can be looked for."""
    (project / "gone").mkdir()
    monkeypatch.chdir(project / "gone")
    (project / "gone").rmdir()
    done = specfix(*command, "--engine", "vllm==0.26.0")
    monkeypatch.chdir(project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("specfix: error: the working directory is gone (") and done.stderr.count("\n") == 1


def test_a_gate_has_one_form_for_one_launch_and_many(specfix: Run, project: Path) -> None:
    (project / "deploy" / "a.yaml").write_text(launch(1024))
    told = json.loads(specfix("gate", "a.yaml", *WHERE, "--format", "json").stdout)
    assert (told["schema"], [each["name"] for each in told["reports"]]) == ("specfix/reports-v1", ["a.yaml"])


def test_what_launches_share_is_read_once(specfix: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from specfix.engines import find
    from specfix.launch import parser

    asked: Counter[str] = Counter()

    def counted(module: ModuleType, name: str) -> None:
        before = getattr(module, name)

        def count(*given: Any) -> Any:
            asked[name] += 1
            return before(*given)

        monkeypatch.setattr(module, name, count)

    counted(parser, "make_parser")
    counted(find, "load")
    find._loaded.cache_clear()
    for number in range(3):
        (project / "deploy" / f"{number}.yaml").write_text(launch(1024 + number))
    assert specfix("gate", ".", *WHERE, "--engine", "vllm==0.24.0").returncode == 0
    assert asked == {"load": 1, "make_parser": 1}
