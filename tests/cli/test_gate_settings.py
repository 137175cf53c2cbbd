"""What a project says once for all its checks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import DRAFT, TARGET, Run
from .gates import IGNORE, POS, without_rights


def test_settings_of_a_project_hold_where_nothing_is_said(specfix: Run, project: Path) -> None:
    text = 'engine = "vllm==0.26.0"\nselect = ["POS001", "AUX001"]\nfail-on = "never"\nhardware = "h200"\n'
    (project / "specfix.toml").write_text(text)
    done = specfix("check", TARGET, DRAFT, "--max-model-len", "8192")
    assert done.returncode == 0 and "on vllm 0.26.0, h200" in done.stdout and "error[POS001]" in done.stdout
    done = specfix("check", TARGET, DRAFT, "--max-model-len", "8192", "--fail-on", "error", "--engine", "vllm==0.24.0")
    assert done.returncode == 1 and "vllm 0.24.0" in done.stdout


def test_a_table_of_pyproject_is_as_good(specfix: Run, project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.other]\nx = 1\n[tool.specfix]\nfail-on = "never"\n')
    assert specfix("check", *POS).returncode == 0
    (project / "deploy" / "pyproject.toml").write_text("[project]\nname = 'x'\n")  # says nothing of specfix
    assert specfix("check", *POS).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        '[tool]\nspecfix = {fail-on = "never"}\n',
        'tool.specfix.fail-on = "never"\n',
        '[ tool . "specfix" ]\nfail-on = "never"\n',
        '[tool.specfix]\r\nfail-on = "never"\r\n',
        '\ufeff[tool.specfix]\nfail-on = "never"\n',
    ],
)
def test_a_table_may_be_written_in_any_way(specfix: Run, project: Path, text: str) -> None:
    (project / "pyproject.toml").write_bytes(text.encode())
    assert specfix("check", *POS).returncode == 0


def test_a_file_of_its_own_may_begin_with_a_mark(specfix: Run, project: Path) -> None:
    (project / "specfix.toml").write_bytes('\ufefffail-on = "never"\r\n'.encode())
    assert specfix("check", *POS).returncode == 0


@pytest.mark.parametrize(
    "text", ['[project]\ndependencies = ["specfix"]\n', 'tool = "specfix"\n', "[tool.specfixes]\n"]
)
def test_a_pyproject_without_the_table_says_nothing(specfix: Run, project: Path, text: str) -> None:
    (project / "specfix.toml").write_text('fail-on = "never"\n')
    (project / "deploy" / "pyproject.toml").write_text(text)
    assert specfix("check", *POS).returncode == 0


def test_strict_may_be_a_setting(specfix: Run, project: Path) -> None:
    pair = (TARGET, DRAFT, "--engine", "vllm==0.26.0", "--select", "AUX004")
    (project / "specfix.toml").write_text("strict = true\n")
    assert specfix("check", *pair).returncode == 1
    assert specfix("check", *pair, "--no-strict").returncode == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[ignore]]\ncode = 'POS001'\n", "ignoring POS001 needs a reason"),
        ("[[ignore]]\ncode = 'POS001'\nreason = ' '\n", "ignoring POS001 needs a reason"),
        ("[[ignore]]\nreason = 'x'\n", "an ignore has the code null"),
        (f"{IGNORE}until = 'soon'\n", "which is no date"),
        (f"{IGNORE}untill = 2026-01-01\n", "specfix.toml:1: an ignore has no key 'untill'; there is until"),
        (f"{IGNORE}{IGNORE}for = 'x'\n", "specfix.toml:4: an ignore has no key 'for'"),
        ("ignore = ['POS001']\n", "an ignore has a code, a reason"),
        ("fial-on = 'error'\n", "no setting 'fial-on'; there is fail-on"),
        ("fail-on = 'fatal'\n", 'fail-on is "fatal"'),
        ("select = 'POS'\n", 'select is "POS"'),
        ("engine = 1\n", "engine is 1"),
        ("x = \n", "is not valid TOML"),
        ("select = ['XYZ']\n", "specfix.toml: select: no rule's code starts with 'XYZ'"),
        (
            f"{IGNORE}[[ignore]]\ncode = 'XYZ'\nreason = 'x'\n",
            "specfix.toml:4: ignore: no rule's code starts with 'XYZ'",
        ),
    ],
)
def test_settings_that_cannot_be_followed(specfix: Run, project: Path, text: str, message: str) -> None:
    (project / "specfix.toml").write_text(text)
    done = specfix("check", *POS[:-2])
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


def unreadable(file: Path, kind: str) -> None:
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "large":
        file.write_text("#" * 1_000_001)
    elif kind == "Latin-1":
        file.write_bytes("# für\n".encode("latin-1"))
    else:
        file.symlink_to(file.name if kind == "loop" else "nowhere")


KINDS = ["broken", "loop", "folder", "pipe", "large", "Latin-1"]


@pytest.mark.parametrize("kind", KINDS)
def test_settings_that_cannot_be_read_are_not_none(specfix: Run, project: Path, kind: str) -> None:
    file = project / "specfix.toml"
    unreadable(file, kind)
    for command in (("check", *POS), ("gate", ".")):
        done = specfix(*command)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"specfix: error: {file} ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_pyproject_of_others_is_none(specfix: Run, project: Path, kind: str) -> None:
    (project / "specfix.toml").write_text('fail-on = "never"\n')
    unreadable(project / "deploy/pyproject.toml", kind)
    assert specfix("check", *POS).returncode == 0


@pytest.mark.parametrize("kind", ["large", "Latin-1", "invalid"])
def test_a_pyproject_that_speaks_of_specfix_and_cannot_be_read_is_not_none(
    specfix: Run, project: Path, kind: str
) -> None:
    file = project / "pyproject.toml"
    if kind != "invalid":
        unreadable(file, kind)
    file.write_bytes(b'[tool.specfix]\nfail-on = "never"\n' + (b"[" if kind == "invalid" else file.read_bytes()))
    done = specfix("check", *POS)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(f"specfix: error: {file} ")


@pytest.mark.parametrize(("name", "status"), [("specfix.toml", 2), ("pyproject.toml", 0)])
def test_settings_that_may_not_be_read(specfix: Run, open_folder: Path, name: str, status: int) -> None:
    (open_folder / name).write_text("")
    assert specfix("gate", ".").returncode == 0
    (open_folder / name).chmod(0)
    with without_rights():
        done = specfix("gate", ".")
    assert done.returncode == status
    assert (f"{open_folder / name} cannot be read: Permission denied" in done.stderr) == bool(status)


@pytest.mark.parametrize("option", ["--baseline", "--hardware"])
@pytest.mark.parametrize("kind", ["broken", "loop"])
def test_other_files_that_cannot_be_read(specfix: Run, project: Path, option: str, kind: str) -> None:
    file = project / "given.json"
    file.symlink_to("given.json" if kind == "loop" else "nowhere")
    done = specfix("check", TARGET, DRAFT, "--engine", "vllm==0.26.0", option, str(file))
    assert (done.returncode, done.stdout) == (2, "") and str(file) in done.stderr
