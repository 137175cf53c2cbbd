"""The pre-commit hook and the action as their users get them: set up anew, over launches that are good and bad."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GIT = ("git", "-c", "user.name=specfix", "-c", "user.email=specfix@localhost")
pytestmark = pytest.mark.pipeline


def launch(length: int) -> str:
    speculative = {"method": "eagle3", "model": str(EXAMPLES / "eagle3-llama-3.1-8b"), "num_speculative_tokens": 5}
    target = EXAMPLES / "llama-3.1-8b-instruct"
    return f"model: {target}\nmax-model-len: {length}\nspeculative-config: {json.dumps(speculative)}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a good launch, a bad one, and files that are none."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "good.yaml").write_text(launch(1024))
    (folder / "bad.yaml").write_text(launch(8192))
    (folder / "other.yaml").write_text("name: CI\non: [push]\n")
    (folder / "specfix.toml").write_text('engine = "vllm==0.26.0"\nhardware = "h200"\nselect = ["POS001"]\n')
    subprocess.run([*GIT, "init", "-q"], cwd=folder, check=True)
    subprocess.run([*GIT, "add", "-A"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This source as a repository of its own, as it would be tagged."""
    folder = tmp_path_factory.mktemp("released")
    files = subprocess.run(
        [*GIT, "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    subprocess.run([*GIT, "init", "-q"], cwd=folder, check=True)
    subprocess.run([*GIT, "add", "-A"], cwd=folder, check=True)
    subprocess.run([*GIT, "commit", "-qm", "release"], cwd=folder, check=True)
    return folder


def test_the_hook(released: Path, project: Path, tmp_path: Path) -> None:
    env = os.environ | {"PRE_COMMIT_HOME": str(tmp_path / "cache")}

    def hook(*files: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "try-repo", str(released), "specfix", "--files", *files]
        return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False)

    bad = hook("good.yaml", "bad.yaml", "other.yaml")
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "fail  bad.yaml: 1 error" in bad.stdout and "pass  good.yaml: nothing found" in bad.stdout
    good = hook("good.yaml", "other.yaml")
    assert good.returncode == 0, good.stdout + good.stderr


@pytest.mark.parametrize(("files", "status"), [("good.yaml other.yaml", 0), (".", 1)])
def test_the_action(project: Path, tmp_path: Path, files: str, status: int) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    (step,) = action["runs"]["steps"]
    given = {name: spec.get("default", "") for name, spec in action["inputs"].items()}
    given |= {"files": files, "sarif": "found.sarif", "python": sys.executable}
    env = dict(os.environ)
    for name, value in step["env"].items():
        source = value.removeprefix("${{ ").removesuffix(" }}")
        env[name] = str(ROOT) if source == "github.action_path" else given[source.removeprefix("inputs.")]
    env |= {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    done = subprocess.run(
        ["bash", "-c", step["run"]], cwd=project, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert (tmp_path / "output").read_text() == f"status={status}\n"
    assert ("::error file=" in done.stdout) == bool(status)
    assert (tmp_path / "summary").read_text().startswith("### specfix")
    results = json.loads((project / "found.sarif").read_text())["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["POS001"] * status


def test_the_manifests_are_what_their_schemas_ask_for() -> None:
    for command in (
        ["pre_commit", "validate-manifest", ".pre-commit-hooks.yaml"],
        ["check_jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml"],
    ):
        done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
