"""``specfix fix``: what it writes and prints, what it exits with, and that a second check agrees."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import specfix as library
from specfix.deployment import hub

from .conftest import DRAFT, TARGET, Run

ENGINE = ("--engine", "vllm==0.26.0", "--method", "eagle3", "--num-speculative-tokens", "5")
GPU = (*ENGINE, "--hardware", "h200", "--max-model-len", "8192")
CPU = (*ENGINE, "--hardware", "cpu", "--max-model-len", "8192")


def codes(report: dict[str, Any]) -> list[str]:
    return [found["code"] for found in report["findings"]]


def check_again(specfix: Run, out: Path, engine: tuple[str, ...]) -> dict[str, Any]:
    """Check what overrides.json says, and nothing else, as someone else's code would start it."""
    given = json.loads((out / "overrides.json").read_text())
    options: list[str] = []
    config = {key.replace("_", "-"): value for key, value in given["speculative_config"].items() if key != "model"}
    given["engine_args"].pop("additional-config", None)  # a word to the compile cache, which no check reads
    for flag, value in {**given["engine_args"], **config}.items():
        options += [f"--{flag}"] if value is True else [f"--{flag}", str(value)]
    env = dict(given["env"])
    if given["shim"]:
        env["PYTHONPATH"] = given["shim"]
    for name, value in env.items():
        options += ["--env", f"{name}={value}"]
    models = [given["target"], *([given["draft"]] if given["draft"] else [])]
    report = json.loads(specfix("check", *models, *options, *engine, "--format", "json").stdout)
    assert isinstance(report, dict)
    return report


@pytest.mark.parametrize("arguments", [GPU, CPU, (*CPU, "--greedy"), (*CPU, "--env", "VLLM_PLUGINS=other")])
def test_checking_the_result_finds_what_is_left(specfix: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    out = tmp_path / "out"
    before = json.loads(specfix("check", TARGET, DRAFT, *arguments, "--format", "json").stdout)
    done = specfix("fix", TARGET, DRAFT, *arguments, "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads((out / "report.json").read_text())
    assert report["schema"] == "specfix/fix-v1"
    assert {change["code"] for change in report["changes"]} >= {"POS001"}
    assert codes(report["found"]) == codes(before)
    left = [found["code"] for found in report["left"]]
    assert sorted([found["code"] for found in report["done"]] + left) == sorted(codes(before))
    assert all(found["reason"] for found in report["left"])
    ends = arguments[arguments.index("--hardware") : arguments.index("--hardware") + 2]
    greedy = ("--greedy",) if "--greedy" in arguments else ()
    assert codes(check_again(specfix, out, ("--engine", "vllm==0.26.0", *ends, *greedy))) == left


def test_the_text_says_what_was_done_what_is_left_and_what_to_run(specfix: Run, tmp_path: Path) -> None:
    out = tmp_path / "a b"
    text = specfix("fix", TARGET, DRAFT, *GPU, "--out", str(out)).stdout
    assert "done error[POS001] draft-position-table" in text
    assert "draft config.json: /max_position_embeddings is 8192" in text
    assert "left note[AUX001]" in text and "for you to decide: " in text
    assert text.endswith(f"is written\nnext: bash '{out}/launch.sh'\n")
    again = specfix("fix", TARGET, DRAFT, *GPU, "--out", str(out)).stdout
    assert "is as it was: it held all this already" in again


@pytest.mark.parametrize(("more", "status"), [((), 0), (("--fail-on", "note"), 1), (("--strict",), 1)])
def test_exit_status_is_of_what_is_left(specfix: Run, tmp_path: Path, more: tuple[str, ...], status: int) -> None:
    assert specfix("fix", TARGET, DRAFT, *GPU, "--out", str(tmp_path / "out"), *more).returncode == status


def test_what_cannot_be_mended_is_left_and_told(specfix: Run, tmp_path: Path) -> None:
    arguments = (*CPU, "--engine", "vllm==0.19.1", "--out", str(tmp_path / "out"))
    done = specfix("fix", TARGET, DRAFT, *arguments)
    assert done.returncode == 1
    assert "left error[HWR001]" in done.stdout
    left = json.loads((tmp_path / "out/report.json").read_text())["left"]
    assert ("HWR001", "manual") in [(found["code"], found["repair"]["safety"]) for found in left]


def test_unsafe_is_asked_for(specfix: Run, tmp_path: Path) -> None:
    draft = tmp_path / "draft"
    draft.mkdir()
    config = json.loads((Path(DRAFT) / "config.json").read_text())
    ids = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 16, 30]}}
    (draft / "config.json").write_text(json.dumps(config | ids))
    arguments = ("fix", TARGET, str(draft), *GPU, "--select", "AUX001", "--out", str(tmp_path / "out"))
    assert "unsafe, done with --unsafe only" in specfix(*arguments).stdout
    assert not (tmp_path / "out/draft").exists()
    assert "done warning[AUX001]" in specfix(*arguments, "--unsafe").stdout
    fixed = json.loads((tmp_path / "out/draft/config.json").read_text())
    assert fixed["eagle_aux_hidden_state_layer_ids"] == [1, 16, 30]


def test_diff_writes_nothing(specfix: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = specfix("fix", TARGET, DRAFT, *CPU, "--diff")
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
    lines = done.stdout.splitlines()
    assert '-  "max_position_embeddings": 2048,' in lines and '+  "max_position_embeddings": 8192,' in lines
    assert '+export PYTHONPATH="$_specfix_here/shim${PYTHONPATH:+:$PYTHONPATH}"' in lines
    assert any(line.startswith("-  --speculative-config") and DRAFT in line for line in lines)
    assert any(line.startswith("+  --speculative-config") and "/draft" in line for line in lines)
    nothing = specfix("fix", TARGET, DRAFT, *GPU, "--max-model-len", "1024", "--diff", "--out", "x")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "--out DIR"),
        (("--out", DRAFT), "lies in the draft"),
        (("--out", f"{TARGET}/out"), "lies in the target"),
        (("--out", "/no/such/folder"), "there is no folder /no/such"),
        (("--out", "x", "--copy", "--engine", "9.9.9"), "9.9.9"),
        (("--out", "x", "--format", "json"), "--format"),
    ],
)
def test_what_cannot_be_done_is_one_line_on_stderr(specfix: Run, arguments: tuple[str, ...], named: str) -> None:
    done = specfix("fix", TARGET, DRAFT, *GPU, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("specfix: error: ") and done.stderr.count("\n") == 1
    assert named in done.stderr


def test_diff_refuses_what_a_run_refuses(specfix: Run, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    for place in (f"{DRAFT}/out", str(tmp_path / "no/out"), str(tmp_path / "a:b")):
        done = [specfix("fix", TARGET, DRAFT, *CPU, "--out", place, *diff) for diff in ((), ("--diff",))]
        assert [each.returncode for each in done] == [2, 2] and done[0].stderr == done[1].stderr
        assert "bug" not in done[0].stderr
    assert specfix("fix", TARGET, DRAFT, *CPU, "--out", out, "--diff").returncode == 1
    specfix("fix", TARGET, DRAFT, *CPU, "--out", out)
    again = specfix("fix", TARGET, DRAFT, *CPU, "--out", out, "--diff")
    assert (again.returncode, again.stdout) == (0, "")
    assert specfix("fix", TARGET, DRAFT, *GPU, "--out", out, "--diff").returncode == 1


def test_the_next_command_takes_no_name_for_an_option(
    specfix: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = specfix("fix", TARGET, DRAFT, *GPU, "--out=-x")
    assert done.stdout.endswith("next: bash ./-x/launch.sh\n")


def test_secrets_stand_only_where_they_are_needed(specfix: Run, tmp_path: Path) -> None:
    secrets = ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "db_password", "APP_CREDENTIALS")
    env = [part for name in secrets for part in ("--env", f"{name}=hunter2")]
    env += ["--env", "TOKENIZERS_PARALLELISM=plain"]
    arguments = (TARGET, DRAFT, *GPU, *env)
    said = [specfix("check", *arguments, "--format", form).stdout for form in ("text", "json", "github")]
    said.append(specfix("fix", *arguments, "--diff").stdout)
    done = specfix("fix", *arguments, "--out", str(tmp_path / "out"))
    files = {path.name: path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert sorted(name for name, text in files.items() if "hunter2" in text) == ["launch.sh", "overrides.json"]
    assert not any("hunter2" in text for text in [*said, done.stdout])
    for text in (said[1], files["report.json"], files["serve.yaml"]):
        assert all(name in text for name in secrets) and "***" in text and "plain" in text


@pytest.mark.parametrize("where", ["target", "draft", "--out", "--env"])
def test_bytes_that_are_no_text(specfix: Run, tmp_path: Path, where: str) -> None:
    odd = os.fsdecode(b"x\xff")
    try:
        (tmp_path / odd).mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    models = {"target": Path(TARGET), "draft": Path(DRAFT)}
    if where in models:
        shutil.copytree(models[where], tmp_path / odd / "model")
        models[where] = tmp_path / odd / "model"
    out = tmp_path / odd / "out" if where == "--out" else tmp_path / "out"
    env = ("--env", f"X={odd}") if where == "--env" else ()
    done = specfix("fix", *map(str, models.values()), *GPU, *env, "--out", str(out))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "is not UTF-8" in done.stderr and "bug" not in done.stderr
    assert not out.exists()


def test_a_lone_file_cannot_be_served(specfix: Run, tmp_path: Path) -> None:
    lone = tmp_path / "llama.json"
    lone.write_text((Path(TARGET) / "config.json").read_text())
    done = specfix("fix", str(lone), DRAFT, *GPU, "--out", str(tmp_path / "out"))
    assert done.returncode == 2 and "is a lone file" in done.stderr
    config = str(Path(DRAFT) / "config.json")
    assert specfix("fix", TARGET, config, *GPU, "--out", str(tmp_path / "out")).returncode == 0


def test_the_fast_path_of_check_has_none_of_it(process: Run) -> None:
    script = (
        "import sys; from specfix.cli import main; main(sys.argv[1:]); "
        "print([name for name in sys.modules if 'specfix.repair' in name or name == 'specfix.shim'])"
    )
    command = [sys.executable, "-c", script, "check", TARGET, DRAFT, *GPU]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_library_has_the_same_door(tmp_path: Path) -> None:
    fixed = library.fix(TARGET, DRAFT, out=tmp_path / "out", engine="0.26.0", hardware="h200", max_model_len=8192)
    assert isinstance(fixed, library.Fixed) and fixed.written
    assert [found.code for found in fixed.plan.done] == ["POS001"]
    assert "+++ " in fixed.diff()
    with pytest.raises(TypeError, match="max_model_length"):
        library.fix(TARGET, DRAFT, out=tmp_path / "out", max_model_length=1)


# --- a draft on the Hub

HUB_ID = "author/eagle3-draft"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hub cache that holds the draft, without its weights; the Hub itself is not asked."""
    folder = tmp_path / "hub"
    repository = folder / "models--author--eagle3-draft"
    snapshot = repository / "snapshots/0123"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text("0123")
    (snapshot / "config.json").write_bytes((Path(DRAFT) / "config.json").read_bytes())
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(hub, "cached_folder", lambda name, revision: snapshot if name == HUB_ID else None)
    return snapshot


def environment(out: Path, hub_cache: Path) -> dict[str, str]:
    """One in which a vllm is found through a link, with a python beside what that leads to."""
    tools, home = out.parent / "bin", out.parent / "home"
    if not tools.exists():
        tools.mkdir()
        home.mkdir()
        (home / "vllm").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        (home / "vllm").chmod(0o755)
        (home / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (home / "python").chmod(0o755)
        (tools / "vllm").symlink_to("../home/vllm")
        (tools / "python3").write_text("#!/bin/sh\necho not this python >&2; exit 3\n")
        (tools / "python3").chmod(0o755)
    return {"PATH": f"{tools}:{os.defpath}", "HF_HUB_CACHE": str(hub_cache), "HF_HUB_OFFLINE": "1", "HOME": "/"}


def launch(out: Path, hub_cache: Path) -> subprocess.CompletedProcess[str]:
    env = environment(out, hub_cache)
    return subprocess.run(
        ["bash", str(out / "launch.sh")], capture_output=True, text=True, env=env, check=False, timeout=60
    )


@pytest.mark.parametrize("copy", [(), ("--copy",)])
def test_a_draft_on_the_hub_is_linked_from_the_cache(
    specfix: Run, tmp_path: Path, cache: Path, copy: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    arguments = ("fix", TARGET, HUB_ID, *GPU, "--out", str(out), *copy)
    done = specfix(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in (out / "draft").iterdir()] == ["config.json"]
    started = launch(out, tmp_path / "hub")
    assert started.returncode == 1 and f"hf download {HUB_ID}" in started.stderr and "serve" not in started.stdout

    (cache / "pytorch_model.bin").write_bytes(b"w")
    (cache / "tokenizer.model").symlink_to("../../blobs/none")
    started = launch(out, tmp_path / "hub")
    assert started.returncode == 0, started.stderr
    assert f'"model": "{out}/draft"' in started.stdout
    assert (out / "draft/pytorch_model.bin").resolve() == (cache / "pytorch_model.bin").resolve()
    assert json.loads((out / "draft/config.json").read_text())["max_position_embeddings"] == 8192
    assert launch(out, tmp_path / "hub").returncode == 0
    assert "as it was" in specfix(*arguments).stdout  # links of launch.sh are no change

    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (cache / "model.safetensors.index.json").write_text(json.dumps(index))
    started = launch(out, tmp_path / "hub")
    assert started.returncode == 1 and "model-1.safetensors, model-2.safetensors" in started.stderr
    (cache / "model.safetensors.index.json").unlink()

    (cache / "config.json").write_text("{}")
    started = launch(out, tmp_path / "hub")
    assert started.returncode == 1 and "has another config.json than was repaired" in started.stderr


RIVAL = """
from pathlib import Path
link = Path.symlink_to
def late(self, to):
    if not (self.parent / to.name).is_symlink():
        link(self.parent / to.name, to)
    link(self, to)
Path.symlink_to = late
"""


def test_another_start_that_is_faster(specfix: Run, tmp_path: Path, cache: Path) -> None:
    """It makes each link just before this one does."""
    out = tmp_path / "out"
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(RIVAL)
    specfix("fix", TARGET, HUB_ID, *GPU, "--env", f"PYTHONPATH={tmp_path / 'site'}", "--out", str(out))
    (cache / "pytorch_model.bin").write_bytes(b"w")
    started = launch(out, tmp_path / "hub")
    assert (started.returncode, started.stderr) == (0, "")
    assert sorted(path.name for path in (out / "draft").iterdir()) == ["config.json", "pytorch_model.bin"]


def test_what_stands_in_the_way_of_linking_is_one_line(specfix: Run, tmp_path: Path, cache: Path) -> None:
    out = tmp_path / "out"
    specfix("fix", TARGET, HUB_ID, *GPU, "--out", str(out))
    (cache / "pytorch_model.bin").write_bytes(b"w")
    (out / "draft/pytorch_model.bin").mkdir()  # as good as a folder that cannot be written
    started = launch(out, tmp_path / "hub")
    assert (started.returncode, started.stderr.count("\n")) == (1, 1)
    assert f"the files of {HUB_ID} cannot be linked in {out}/draft: " in started.stderr


def test_without_a_vllm_nothing_else_is_run(specfix: Run, tmp_path: Path, cache: Path) -> None:
    out = tmp_path / "out"
    specfix("fix", TARGET, HUB_ID, *GPU, "--out", str(out))
    (tmp_path / "python").write_text(f"#!/bin/sh\ntouch {tmp_path}/evil\n")
    (tmp_path / "python").chmod(0o755)
    env = {"PATH": os.defpath, "HOME": "/"}
    command = ["bash", str(out / "launch.sh")]
    started = subprocess.run(command, capture_output=True, text=True, env=env, check=False, cwd=tmp_path)
    assert (started.returncode, started.stderr.count("\n")) == (127, 1)
    assert "vllm is not on PATH" in started.stderr and not (tmp_path / "evil").exists()


def test_a_draft_that_is_not_cached_is_refused_clearly(specfix: Run, tmp_path: Path, cache: Path) -> None:
    out = tmp_path / "out"
    specfix("fix", TARGET, f"{HUB_ID}@v1", *GPU, "--out", str(out))
    (tmp_path / "empty").mkdir()
    started = launch(out, tmp_path / "empty")
    assert started.returncode == 1
    assert f"is not in the Hub cache of this machine; first: hf download {HUB_ID} --revision v1" in started.stderr
    assert "Traceback" not in started.stderr


def test_a_draft_that_stays_where_it_is_is_repaired_by_the_shim(specfix: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = specfix("fix", TARGET, DRAFT, *GPU, "--keep-draft", "--out", str(out))
    assert done.returncode == 0, done.stderr
    manifest = json.loads((out / "shim" / "specfix_shim" / "manifest.json").read_text())
    settings = {"draft": str(Path(DRAFT).absolute()), "max_position_embeddings": 8192}
    assert manifest["patches"] == {"draft_positions": settings}
    assert not (out / "draft").exists()
    again = ("--env", f"PYTHONPATH={out / 'shim'}", "--format", "json")
    assert "POS001" not in codes(json.loads(specfix("check", TARGET, DRAFT, *GPU, *again).stdout))
    # a shim that does not raise it far enough mends nothing
    assert "POS001" in codes(json.loads(specfix("check", TARGET, DRAFT, *GPU[:-1], "16384", *again).stdout))
