"""Two releases: what the second changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import DRAFT, TARGET, Run
from .gates import PAIR, WHERE, launch

UPGRADE = (*PAIR, "--select", "POS001", "--engine", "vllm==0.26.0", "--engine", "vllm==0.32.0")


def test_what_an_upgrade_changes(specfix: Run, project: Path) -> None:
    done = specfix("check", *UPGRADE)
    assert done.stdout.startswith("== vllm 0.26.0 -> vllm 0.32.0\n")
    told = json.loads(specfix("check", *UPGRADE, "--format", "json").stdout)
    (upgrade,) = told["upgrades"]
    assert told["schema"] == "specfix/upgrades-v1"
    # the compiled V2 runner dies; the later release raises the table, and there is nothing left to find there
    assert [found["phase"] for found in upgrade["gone"]] == ["runtime"]
    assert done.returncode == (1 if upgrade["new"] else 0)
    back = specfix("check", *UPGRADE[:-3], "vllm==0.32.0", "--engine", "vllm==0.26.0")
    assert back.returncode == 1 and "error[POS001]" in back.stdout


@pytest.mark.parametrize("form", ["sarif", "github", "junit", "markdown"])
def test_an_upgrade_in_other_formats(specfix: Run, project: Path, form: str) -> None:
    back = (*UPGRADE[:-3], "vllm==0.32.0", "--engine", "vllm==0.26.0", "--format", form)
    done = specfix("check", *back)
    assert done.returncode == 1 and "POS001" in done.stdout


def test_the_same_release_twice_changes_nothing(specfix: Run, project: Path) -> None:
    done = specfix("check", *UPGRADE[:-1], "vllm==0.26.0")
    assert done.returncode == 0 and done.stdout.endswith("0 new, 0 gone, 1 as before\n")


UP = (*WHERE, "--engine", "vllm==0.26.0", "--engine", "vllm==0.32.0")
DOWN = (*WHERE, "--engine", "vllm==0.32.0", "--engine", "vllm==0.26.0")


def test_an_upgrade_of_several_launches(specfix: Run, project: Path) -> None:
    (project / "deploy" / "a.yaml").write_text(launch(8192))
    (project / "deploy" / "b.yaml").write_text(launch(1024))
    done = specfix("gate", ".", *UP)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == [
        "a.yaml: vllm 0.26.0 -> vllm 0.32.0: 0 new, 1 gone, 0 as before",
        "b.yaml: vllm 0.26.0 -> vllm 0.32.0: 0 new, 0 gone, 0 as before",
    ]
    assert specfix("gate", ".", *DOWN).returncode == 1
    assert specfix("gate", ".", *DOWN, "--fail-on", "never").returncode == 0
    (project / "deploy" / "c.yaml").write_text("vllm: [\n")  # the others are told of all the same
    done = specfix("gate", ".", *DOWN)
    assert done.returncode == 2 and "error[POS001]" in done.stdout and "could not check: line 2" in done.stdout


def test_a_launch_that_one_release_reads_without_speculation(specfix: Run, project: Path) -> None:
    """``--spec-model`` is not a flag of older releases."""
    (project / "deploy" / "a.sh").write_text(f"vllm serve {TARGET} --spec-model {DRAFT} --spec-method eagle3\n")
    done = specfix("gate", ".", "--hardware", "h200", "--engine", "vllm==0.10.0", "--engine", "vllm==0.32.0")
    assert done.returncode == 2 and "a.sh" in done.stdout
