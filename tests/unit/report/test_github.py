"""GitHub's workflow commands: one line each, whatever stands in a config."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specfix.checker.report import Skipped
from specfix.deployment import Location
from specfix.report.github import render

from .sample import ABSENT, POSITIONS, TRITON, at, report

SEVERAL = """\
::error file=models/draft/config.json,line=4,title=POS001 draft-position-table::\
The draft has 2048 positions, and sequences of up to 8192 tokens are served.\
%0AWhat happens: serves, but accepts nothing or is wrong\
%0ARepair, safe: set max_position_embeddings to 8192 in the draft%0AMore: specfix explain POS001
::warning title=HWR002 triton-without-a-driver::environment: CUDA_VISIBLE_DEVICES=\
%0ACUDA_VISIBLE_DEVICES is the empty string, so Triton counts as there.\
%0AWhat happens: seen while serving (likely)\
%0ARepair, unsafe: unset CUDA_VISIBLE_DEVICES%0AMore: specfix explain HWR002
::notice file=models/draft/config.json,line=1,title=AUX001 aux-layers-guessed::\
The draft names no layers: the engine guesses 2, 16 and 29.\
%0AWhat happens: worth knowing%0AMore: specfix explain AUX001
skipped KVC001, not known: a safetensors header of models/draft
specfix: fail: 1 error, 1 warning, 1 note; 1 rule skipped
"""


@pytest.fixture(autouse=True)
def no_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def test_several_findings_to_the_letter() -> None:
    skipped = (Skipped("KVC001", "a safetensors header of models/draft"),)
    assert render(report(POSITIONS, TRITON, ABSENT, skipped=skipped)) == SEVERAL


def test_assumptions_are_said_first() -> None:
    lines = render(report(assumptions=("hardware cpu: found here, 100%",))).splitlines()
    assert lines[0] == "::notice title=specfix assumed::hardware cpu: found here, 100%25"


def test_nothing_found_is_one_line() -> None:
    assert render(report()) == "specfix: pass: nothing found\n"


def test_a_message_cannot_start_a_command_of_its_own() -> None:
    lines = render(report(at("/x", 1, "50 %\n::add-mask::x\r\x1b[31m"))).splitlines()
    assert len(lines) == 2
    assert r"::50 %25\n::add-mask::x\r\x1b[31m%0AWhat happens" in lines[0]


def test_a_file_name_cannot_add_a_property() -> None:
    odd = at("/x", 1)
    odd = replace(odd, finding=replace(odd.finding, location=Location("a,line=9::b%/config.json", "/x", 2)))
    assert render(report(odd)).startswith("::error file=a%2Cline=9%3A%3Ab%25/config.json,line=2,title=")


@pytest.mark.parametrize(("below", "shown"), [("work", "models/config.json"), ("elsewhere", None)])
def test_paths_are_relative_to_the_workspace(
    below: str, shown: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / below))
    file = str(tmp_path / "work/models/config.json")
    odd = at("/x", 1)
    odd = replace(odd, finding=replace(odd.finding, location=Location(file, "/x", 2)))
    assert f"file={shown or file}," in render(report(odd))
