"""explain, rules, engine, hardware, --version, --help."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import specfix as library
from specfix.cli import main
from specfix.engines.find import shipped_versions

from .conftest import DRAFT, TARGET, Run


def test_version(specfix: Run) -> None:
    assert specfix("--version").stdout == f"specfix {library.__version__}\n"


@pytest.mark.parametrize("command", ["check", "explain", "rules", "engine", "hardware"])
def test_help(specfix: Run, command: str) -> None:
    done = specfix(command, "--help")
    assert done.returncode == 0 and f"specfix {command}" in done.stdout


@pytest.mark.parametrize(
    "arguments", [(), ("chek",), ("explain",), ("rules", "--format", "xml"), ("hardware", "--save")]
)
def test_bad_usage(specfix: Run, arguments: tuple[str, ...]) -> None:
    done = specfix(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("specfix: error: ") and done.stderr.count("\n") == 1


def test_a_choice_that_is_none_is_told_in_plain_words(specfix: Run) -> None:
    said = specfix("check", TARGET, DRAFT, "--format", "xml").stderr
    assert said.startswith("specfix: error: Invalid value for '--format': 'xml' is not one of 'text', 'json'")


@pytest.mark.parametrize("code", ["POS001", "pos001", "draft-position-table"])
def test_explain_prints_the_page(specfix: Run, code: str) -> None:
    done = specfix("explain", code)
    assert done.returncode == 0
    assert "POS001" in done.stdout and "## What it finds" in done.stdout


@pytest.mark.parametrize(("code", "near"), [("POS0001", "POS001"), ("draft-positions-table", "draft-position-table")])
def test_explain_names_what_is_near(specfix: Run, code: str, near: str) -> None:
    done = specfix("explain", code)
    assert (done.returncode, done.stdout) == (2, "")
    assert near in done.stderr


def test_rules(specfix: Run) -> None:
    lines = specfix("rules").stdout.splitlines()
    assert any(line.startswith("POS001  draft-position-table ") and " error " in line for line in lines)
    listed = json.loads(specfix("rules", "--format", "json").stdout)
    assert listed["schema"] == "specfix/rules-v1"
    assert list(listed["rules"][0]) == ["code", "name", "severity", "summary", "requires", "evidence"]
    codes = [rule["code"] for rule in listed["rules"]]
    assert codes == sorted(set(codes)) and all(any(line.startswith(code) for line in lines) for code in codes)


def test_engine_lists_the_releases(specfix: Run) -> None:
    lines = specfix("engine").stdout.splitlines()
    assert lines[0].split() == ["release", "model", "runner", "EAGLE3", "targets", "fixes", "not", "known"]
    assert [line.split()[0] for line in lines[1 : lines.index("")]] == shipped_versions()
    listed = json.loads(specfix("engine", "--format", "json").stdout)
    assert [engine["version"] for engine in listed["engines"]] == shipped_versions()


def test_engine_shows_one_release(specfix: Run) -> None:
    text = specfix("engine", "vllm==0.26.0").stdout
    assert text.startswith("vllm 0.26.0: shipped with specfix") and "EAGLE3 targets" in text
    assert len(specfix("engine", "0.26.0", "--all").stdout) > len(text)
    facts = json.loads(specfix("engine", "0.26.0", "--format", "json").stdout)
    assert facts["schema"] == "specfix/engine-v1" and "dspark" in facts["methods"]["methods"]


def test_engine_compares_releases(specfix: Run) -> None:
    text = specfix("engine", "0.26.0", "0.27.1", "0.33.0").stdout
    assert text.startswith("vllm 0.26.0 → 0.27.1, for speculative decoding\n")
    assert "  + draft-positions-raised: " in text and "\nvllm 0.27.1 → 0.33.0, " in text
    steps = json.loads(specfix("engine", "0.26.0", "0.27.1", "--format", "json").stdout)["steps"]
    assert [(step["before"]["version"], step["after"]["version"]) for step in steps] == [("0.26.0", "0.27.1")]


@pytest.mark.parametrize("versions", [("9.9.9",), ("0.26.0", "9.9.9"), ("9.9.9", "0.26.0")])
def test_engine_that_is_not_known(specfix: Run, versions: tuple[str, ...]) -> None:
    done = specfix("engine", *versions)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("specfix: error: vllm 9.9.9 is not known") and done.stderr.count("\n") == 1


def test_engine_whose_reader_goes_away() -> None:
    command = f"{shlex.quote(sys.executable)} -m specfix engine 0.26.0 0.33.0 --format json | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("{", "")


def test_hardware_is_saved_and_read_back(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    done = specfix("hardware", "--save", str(file))
    assert done.returncode == 0 and done.stdout.startswith("name ")
    again = specfix("check", TARGET, DRAFT, "--hardware", str(file), "--format", "json")
    saved = json.loads(again.stdout)["deployment"]["hardware"]
    assert saved["platform"] in ("cpu", "cuda", "rocm")


def test_hardware_that_cannot_be_saved(specfix: Run, tmp_path: Path) -> None:
    done = specfix("hardware", "--save", str(tmp_path / "no" / "folder"))
    assert done.returncode == 2
    assert done.stderr.startswith("specfix: error: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_name_that_is_no_files(specfix: Run, name: str) -> None:
    done = specfix("hardware", "--save", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("specfix: error: ") and done.stderr.count("\n") == 1


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("specfix.checker.registry.load_rules", interrupt)
    assert main(["rules"]) == 130


def test_a_bug_is_no_finding(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("specfix.checker.registry.load_rules", lambda: 1 / 0)
    assert main(["rules"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-1].startswith("specfix: error: ZeroDivisionError")


def test_the_library_has_the_same_door() -> None:
    options = {"engine": "vllm==0.26.0", "hardware": "h200", "max_model_len": 8192}
    report = library.check(Path(TARGET), DRAFT, select="pos001", **options)  # type: ignore[arg-type]
    assert isinstance(report, library.Report) and isinstance(report.deployment, library.Deployment)
    assert (report.verdict, [found.code for found in report.findings]) == ("fail", ["POS001"])
    with pytest.raises(library.CannotCheck, match="eagle4"):
        library.check(TARGET, DRAFT, method="eagle4", engine="vllm==0.26.0")
    with pytest.raises(AttributeError, match="chek"):
        _ = library.chek
    assert set(library.__all__) <= set(dir(library))


def test_completion_of_a_shell(process: Run) -> None:
    shown = process("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")  # by its parents
    assert shown.returncode == 0 and "complete -o default -F _specfix_completion specfix" in shown.stdout
    words = {"_SPECFIX_COMPLETE": "complete_bash", "COMP_WORDS": "specfix ga", "COMP_CWORD": "1"}
    assert process(**words).stdout.split() == ["gate"]
