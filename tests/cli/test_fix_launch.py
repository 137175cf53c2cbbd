"""``specfix fix --launch``: the launch file itself is repaired, and nothing in it changes but what the plan says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .conftest import DRAFT, TARGET, Run

SPEC = json.dumps({"method": "eagle3", "model": "DRAFT", "num_speculative_tokens": 5})
IMAGE = "vllm/vllm-openai:v0.26.0"
SERVE = f"# ours\nmodel: TARGET  # the target\nmax-model-len: 8192\nspeculative-config: {SPEC}\n\n# the end\n"
SCRIPT = f"""\
#!/bin/sh
export HF_TOKEN=s3cret  # mine
exec vllm serve TARGET --max-model-len 8192 \\
  --speculative-config '{SPEC}' \\
  --port 8000 | tee log
"""
COMPOSE = f"""\
services:
  llm:
    image: {IMAGE}
    command: [--model, TARGET, --max-model-len, "8192",
              --speculative-config, '{SPEC}']   # all
    volumes: ["HERE:/here", TARGET:/t]
"""
POD = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: llm}}
spec:
  containers:
  - name: llm
    image: {IMAGE}
    command: ["sh", "-c"]
    args:
    - |
      # serve
      vllm serve /here/target --max-model-len 8192 \\
        --speculative-config '{SPEC.replace("DRAFT", "/here/eagle-head")}'
    ports: []
"""
FORMS = {"serve.yaml": SERVE, "run.sh": SCRIPT, "compose.yaml": COMPOSE, "pod.yaml": POD}
ENGINE = ("--engine", "vllm==0.26.0")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    shutil.copytree(TARGET, tmp_path / "target")
    shutil.copytree(DRAFT, tmp_path / "eagle-head")
    return tmp_path


def written(here: Path, name: str, **changes: str) -> tuple[Path, str]:
    text = FORMS[name].replace("8192", changes.get("length", "8192"))
    if name == "compose.yaml":
        text = (
            text.replace("TARGET:/t", str(here / "target") + ":/t")
            .replace("TARGET", "/t")
            .replace("DRAFT", "/here/eagle-head")
        )
    text = (
        text.replace("TARGET", str(here / "target"))
        .replace("DRAFT", str(here / "eagle-head"))
        .replace("HERE", str(here))
    )
    file = here / name
    file.write_text(text)
    return file, text


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("hardware", ["h200", "cpu"])
def test_the_file_is_repaired_and_checked(specfix: Run, here: Path, name: str, hardware: str) -> None:
    file, text = written(here, name)
    out = here / "out"
    pod = name == "pod.yaml"  # of which only whoever runs it knows what is mounted
    target, draft = str(here / "target"), str(here / "eagle-head")
    models, at = ((target, draft), ("--at", "/here/out")) if pod else ((), ())
    shared = (*ENGINE, "--hardware", hardware)
    arguments = (*models, "--launch", str(file), *shared, *at)
    diff = specfix("fix", *arguments, "--diff")
    assert (diff.returncode, diff.stderr, out.exists()) == (1, "", False)
    assert f"--- {file}\n" in diff.stdout and "s3cret" not in diff.stdout
    assert specfix("fix", *arguments, "--diff", "--out", str(out)).returncode == 1
    done = specfix("fix", *arguments, "--out", str(out))
    assert done.stderr == "" and file.read_text() == text
    report = json.loads((out / "report.json").read_text())
    left = [found["code"] for found in report["left"]]
    shim = hardware == "cpu" and name != "serve.yaml"
    assert done.returncode == (1 if hardware == "cpu" and not shim else 0)
    assert ("HWR005" in left) == (hardware == "cpu" and not shim)
    files = {".specfix", "draft", "report.json", name} | ({"shim"} if shim else set())
    assert {path.name for path in out.iterdir()} == files
    seen = "/here/out" if name in ("compose.yaml", "pod.yaml") else str(out)
    after = (out / name).read_text()
    assert f'"model": "{seen}/draft"' in after and "additional-config" in after and (f"{seen}/shim" in after) == shim
    kept = [line for line in text.splitlines() if "speculative" not in line]
    assert [line for line in after.splitlines() if line in kept] == kept
    assert specfix("fix", *arguments, "--diff", "--out", str(out)).stdout == ""
    assert "is as it was: it held all this already" in specfix("fix", *arguments, "--out", str(out)).stdout
    if pod and shim:
        return  # that the shim is in the folder which the pod sees as /here/out cannot be known
    models = (target, str(out / "draft")) if pod else ()
    checked = specfix("check", *models, "--launch", str(out / name), *shared, "--format", "json")
    assert [found["code"] for found in json.loads(checked.stdout)["findings"]] == left
    again = specfix("fix", *models, "--launch", str(out / name), *shared, "--diff")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


@pytest.mark.parametrize("name", FORMS)
def test_a_launch_with_nothing_to_repair_stays(specfix: Run, here: Path, name: str) -> None:
    file, _ = written(here, name, length="1024")
    content = b"\xef\xbb\xbf" + file.read_bytes() if name != "run.sh" else file.read_bytes()
    file.write_bytes(content)
    file.chmod(0o700)
    models = (str(here / "target"), str(here / "eagle-head"))
    arguments = ("fix", *models, "--launch", str(file), *ENGINE, "--hardware", "h200")
    diff = specfix(*arguments, "--diff")
    assert (diff.returncode, diff.stdout, diff.stderr) == (0, "", "")
    done = specfix(*arguments, "--out", str(here / "out"))
    assert done.returncode == 0 and done.stdout.endswith(f"{name} is as it was: nothing is to be changed there\n")
    copy = here / "out" / name
    assert copy.read_bytes() == content and copy.stat().st_mode & 0o777 == 0o700


def test_what_has_to_be_done_by_hand_is_left_and_named(specfix: Run, here: Path) -> None:
    file, text = written(here, "run.sh")
    head = str(here / "eagle-head")
    file.write_text(f"D={head}\n" + text.replace(f'"{head}"', "\"'$D'\""))
    done = specfix("fix", "--launch", str(file), *ENGINE, "--hardware", "h200", "--out", str(here / "out"))
    assert done.returncode == 1 and "left error[POS001]" in done.stdout
    told = " ".join(done.stdout.split())
    assert f"{file}, line 5: '{head}' comes from $D" in told.replace("= ", "")
    assert (here / "out/run.sh").read_text() == file.read_text()
    serve, _ = written(here, "serve.yaml")
    done = specfix("fix", "--launch", str(serve), *ENGINE, "--hardware", "cpu", "--out", str(here / "out2"))
    told = " ".join(done.stdout.split()).replace(" = ", " ")
    assert "left error[HWR005]" in told and "such a file sets no variables: do it where the server is started" in told
    assert "write PYTHONPATH=" in told


def test_where_a_container_sees_the_folder_is_said(specfix: Run, here: Path) -> None:
    file, text = written(here, "compose.yaml")
    file.write_text(text.replace(f'"{here}:/here", ', ""))
    models = (str(here / "target"), str(here / "eagle-head"))
    arguments = ("fix", *models, "--launch", str(file), "--hardware", "cpu", "--out", str(here / "out"))
    done = specfix(*arguments)
    assert f'"model": "{here}/out/draft"' in (here / "out/compose.yaml").read_text()
    assert f"{here}/out is to be seen as {here}/out by the server: mount it there\n" in done.stdout
    assert "--copy writes files" in done.stdout
    done = specfix(*arguments, "--at", "/mnt/fixed/", "--copy")
    after = (here / "out/compose.yaml").read_text()
    assert '"model": "/mnt/fixed/draft"' in after and "      PYTHONPATH: /mnt/fixed/shim\n" in after
    assert f"{here}/out is to be seen as /mnt/fixed by the server: mount it there\n" in done.stdout
    assert "--copy" not in done.stdout and f"next: put {here}/out/compose.yaml in the place of {file}\n" in done.stdout


def test_the_draft_may_stay(specfix: Run, here: Path) -> None:
    file, text = written(here, "run.sh")
    specfix("fix", "--launch", str(file), *ENGINE, "--hardware", "h200", "--keep-draft", "--out", str(here / "out"))
    added = f'export PYTHONPATH="{here}/out/shim${{PYTHONPATH:+:$PYTHONPATH}}"\n'
    assert (here / "out/run.sh").read_text() == text.replace("exec vllm", f"{added}exec vllm")


def test_flags_and_keys(specfix: Run, here: Path) -> None:
    file, text = written(here, "compose.yaml", length="1024")
    file.write_text(text.replace(": 5}", ': 5, "draft_tensor_parallel_size": 4}'))
    done = specfix("fix", "--launch", str(file), "--hardware", "h200", "--unsafe", "--diff")
    assert done.returncode == 1 and done.stderr == ""
    lines = [line for line in done.stdout.splitlines() if line.startswith(("-", "+"))]
    assert [line[:1] for line in lines] == ["-", "+", "-", "+"]
    assert lines[2].replace(', "draft_tensor_parallel_size": 4', "")[1:] == lines[3][1:]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--launch", "two.yaml", "--out", "o"),
            "several launches with speculation, and fix takes a file with one: two.y",
        ),
        (("--launch", "none.sh", "--out", "o"), "none.sh asks for no speculation"),
        (("--launch", "serve.yaml", "--max-model-len", "9", "--diff"), "--max-model-len and a launch are given"),
        (("--launch", "serve.yaml"), "fix needs --out DIR"),
        (("--launch", "/nowhere.yaml", "--diff"), "/nowhere.yaml cannot be read"),
        (("--launch", ".", "--diff"), "cannot be read"),
        (("--at", "/x", TARGET, DRAFT, "--diff"), "--at says where"),
        (("--diff",), "fix needs a TARGET and its DRAFT, or a launch"),
        (("--launch", "in/serve.yaml", "--out", "in"), "holds the launch file"),
        (("--launch", "draft", "--out", "o"), "the output folder has its own draft"),
    ],
)
def test_what_cannot_be_fixed(
    specfix: Run, here: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(here)
    _, text = written(here, "serve.yaml")
    (here / "in").mkdir()
    (here / "in/serve.yaml").write_text(text)
    (here / "two.yaml").write_text(f"{text}---\n{text}")
    (here / "none.sh").write_text(f"vllm serve {TARGET}\n")
    (here / "draft").write_text(SCRIPT.replace("TARGET", TARGET).replace("DRAFT", str(here / "eagle-head")))
    done = specfix("fix", *arguments, *ENGINE, "--hardware", "h200")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert not (here / "o").exists()


def test_of_several_servers_the_one_that_speculates(specfix: Run, here: Path) -> None:
    file, text = written(here, "compose.yaml")
    other = f"  plain:\n    image: {IMAGE}\n    command: [--model, /m]\n"
    file.write_text(text.replace("services:\n", f"services:\n{other}"))
    assert specfix("fix", "--launch", str(file), "--hardware", "h200", "--out", str(here / "out")).returncode == 0
    after = (here / "out/compose.yaml").read_text()
    assert other in after and '"/here/out/draft"' in after


def test_a_draft_on_the_hub_cannot_lie_in_the_folder(specfix: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = here / "hub"
    snapshot = cache / "models--org--head/snapshots/abc"
    snapshot.mkdir(parents=True)
    shutil.copy(Path(DRAFT) / "config.json", snapshot)
    (cache / "models--org--head/refs").mkdir()
    (cache / "models--org--head/refs/main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    file, text = written(here, "run.sh")
    file.write_text(text.replace(str(here / "eagle-head"), "org/head"))
    arguments = ("fix", "--launch", str(file), *ENGINE, "--hardware", "h200", "--out", str(here / "out"))
    done = specfix(*arguments)
    if done.returncode == 2:
        pytest.skip(done.stderr)
    assert done.returncode == 1 and "or --keep-draft" in done.stdout
    assert specfix(*arguments, "--keep-draft").returncode == 0
