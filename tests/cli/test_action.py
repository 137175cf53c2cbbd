"""What the action makes of its inputs: its own script, with a stand-in for the environment that it sets up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
# makes VENV/bin/pip and VENV/bin/specfix, which writes its arguments to $SEEN, a NUL after each
PYTHON = """\
#!/bin/bash
mkdir -p "$3/bin"
printf '#!/bin/bash\\n' > "$3/bin/pip"
printf '#!/bin/bash\\nprintf "%%s\\\\0" "$@" > "$SEEN"\\nexit "${STATUS:-0}"\\n' > "$3/bin/specfix"
chmod +x "$3/bin/pip" "$3/bin/specfix"
"""


def run(folder: Path, status: int = 0, **inputs: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The step with these inputs in ``folder``, and the arguments that specfix got last."""
    (step,) = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
    python, seen = folder.parent / "python", folder.parent / "seen"
    python.write_text(PYTHON)
    python.chmod(0o755)
    env = {**os.environ, **dict.fromkeys(step["env"], ""), "SEEN": str(seen), "STATUS": str(status)}
    env |= {f"SPECFIX_{name.upper()}": value for name, value in inputs.items()} | {"SPECFIX_PYTHON": str(python)}
    env |= {"GITHUB_OUTPUT": str(folder.parent / "output"), "GITHUB_STEP_SUMMARY": str(folder.parent / "summary")}
    done = subprocess.run(["bash", "-c", step["run"]], cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done, seen.read_text().split("\0")[:-1] if seen.exists() else []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "deploy" / "eu").mkdir(parents=True)
    for name in ("a.yaml", "my launch.yaml", "deploy/b.yaml", "deploy/eu/c.yaml"):
        (folder / name).write_text("x: 1\n")
    return folder


@pytest.mark.parametrize(
    ("files", "got"),
    [
        ("a.yaml deploy", ["a.yaml", "deploy"]),
        ("a.yaml deploy\n", ["a.yaml", "deploy"]),  # as YAML folds lines
        ("a.yaml\n  deploy/b.yaml  \r\n\n", ["a.yaml", "deploy/b.yaml"]),
        ("my launch.yaml", ["my launch.yaml"]),
        ("deploy/b.yaml\nmy launch.yaml\n", ["deploy/b.yaml", "my launch.yaml"]),
        ("deploy/**/*.yaml a.yaml", ["deploy/**/*.yaml", "a.yaml"]),  # specfix itself looks what matches
        ("my *.yaml", ["my *.yaml"]),
        ("$(touch made) `touch made` ; touch made", ["$(touch", "made)", "`touch", "made`", ";", "touch", "made"]),
    ],
)
def test_files(project: Path, files: str, got: list[str]) -> None:
    done, arguments = run(project, files=files)
    assert done.returncode == 0, done.stderr
    assert arguments[arguments.index("--") + 1 :] == got
    assert not (project / "made").exists()


def test_no_files_are_an_error(project: Path) -> None:
    done, arguments = run(project, files=" \n")
    assert (done.returncode, arguments) == (2, []) and "::error" in done.stdout
    assert (project.parent / "output").read_text() == "status=2\n"


def test_engines_and_the_other_inputs(project: Path) -> None:
    done, arguments = run(project, 1, files=".", engine="vllm==0.26.0\nvllm==0.32.0", hardware="h200", fail_on="note")
    assert done.returncode == 1 and (project.parent / "output").read_text() == "status=1\n"
    assert arguments[:5] == ["gate", "--engine", "vllm==0.26.0", "--engine", "vllm==0.32.0"]
    assert arguments[5:9] == ["--hardware", "h200", "--fail-on", "note"]
