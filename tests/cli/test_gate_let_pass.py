"""Findings that are let pass: ignored for a reason, or in a baseline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run
from .gates import IGNORE, POS, launch, noted


def test_what_is_ignored_for_a_reason_is_let_pass_and_said(specfix: Run, project: Path) -> None:
    (project / "specfix.toml").write_text(IGNORE)
    done = specfix("check", *POS)
    assert done.returncode == 0
    assert "let pass POS001 draft-position-table: prompts stay short here" in done.stdout
    assert done.stdout.splitlines()[-1] == "pass: nothing found; 1 finding let pass"
    (told,) = json.loads(specfix("check", *POS, "--format", "json").stdout)["let_pass"]
    assert (told["code"], told["reason"]) == ("POS001", "prompts stay short here")


@pytest.mark.parametrize(("day", "status"), [("2999-12-31", 0), ("2001-01-01", 1)])
def test_an_ignore_may_end(specfix: Run, project: Path, day: str, status: int) -> None:
    (project / "specfix.toml").write_text(f"\n{IGNORE}until = {day}\n")
    done = specfix("check", *POS)
    assert done.returncode == status
    told = f"note: the ignore of POS001 ended on {day}: what it named is reported again (1 finding)"
    assert (told in " ".join(done.stdout.split())) == bool(status)
    assert ("specfix.toml:2)" in done.stdout) == bool(status)
    assert done.stdout.splitlines()[-1].startswith("fail:" if status else "pass:")


@pytest.mark.parametrize("form", ["json", "sarif", "github", "markdown"])
def test_the_end_of_an_ignore_is_said_in_each_format(specfix: Run, project: Path, form: str) -> None:
    (project / "specfix.toml").write_text(f"{IGNORE}until = 2001-01-01\n")
    assert "ended on 2001-01-01" in specfix("check", *POS, "--format", form).stdout.replace("\\", "")


def test_an_ignore_that_names_nothing_is_said_of_a_whole_folder_alone(specfix: Run, project: Path) -> None:
    told = "note: the ignore of POS001 named none of the findings"
    (project / "specfix.toml").write_text(IGNORE)
    (project / "deploy" / "a.yaml").write_text(launch(1024))
    where = ("--engine", "vllm==0.26.0", "--hardware", "h200")
    done = specfix("gate", ".", *where)
    assert told in done.stdout and done.returncode == 0
    assert told not in specfix("gate", "a.yaml", *where).stdout
    assert told not in specfix("gate", ".", *where, "--select", "POS001").stdout
    assert told not in specfix("gate", ".", *where, "--format", "github").stdout
    (project / "deploy" / "a.yaml").write_text(launch(8192))
    assert told not in specfix("gate", ".", *where).stdout


def test_a_baseline_leaves_new_findings_alone(specfix: Run, project: Path) -> None:
    file = project / "debts.json"
    assert specfix("check", *POS, "--write-baseline", str(file)).returncode == 1
    done = specfix("check", *POS, "--baseline", str(file))
    assert done.returncode == 0 and "let pass POS001 draft-position-table: in the baseline" in done.stdout
    both = (*POS[:-1], "POS001,AUX001")
    done = specfix("check", *both, "--baseline", str(file), "--fail-on", "note")
    assert done.returncode == 1 and "note[AUX001]" in done.stdout
    (project / "specfix.toml").write_text('baseline = "debts.json"\n')
    assert specfix("check", *POS).returncode == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist: write it with --write-baseline"),
        ("{", "not valid JSON"),
        ('{"schema": "other", "findings": []}', "is no specfix/baseline-v1"),
        ('{"schema": "specfix/baseline-v1", "findings": [{"code": 1}]}', "which is no finding"),
    ],
)
def test_a_baseline_that_is_none(specfix: Run, project: Path, content: str | None, message: str) -> None:
    file = project / "debts.json"
    if content is not None:
        file.write_text(content)
    done = specfix("check", *POS, "--baseline", str(file))
    assert done.returncode == 2 and message in done.stderr


def test_a_baseline_that_cannot_be_written(specfix: Run, project: Path) -> None:
    done = specfix("check", *POS, "--write-baseline", str(project / "no" / "such.json"))
    assert done.returncode == 2 and "cannot be written" in done.stderr


def test_an_ignore_is_not_one_too_many_where_not_all_was_looked_at(specfix: Run, project: Path) -> None:
    (project / "specfix.toml").write_text(IGNORE)
    (project / "deploy/a.yaml").write_text(launch(1024))
    where = ("--engine", "vllm==0.26.0", "--hardware", "h200")
    told = "the ignore of POS001 named none of the findings"
    assert told in specfix("gate", ".", *where).stdout
    (project / "deploy/b.yaml").symlink_to("nowhere")
    done = specfix("gate", ".", *where)
    assert done.returncode == 0 and told not in done.stdout
    assert noted(done) == ["cannot be read: No such file or directory (b.yaml)"]
