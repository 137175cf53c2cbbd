"""Of each file that is given or met: whether it is read, and what is said of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .conftest import DRAFT, TARGET, Run
from .gates import WHERE, WHERE_26, launch, without_rights


@pytest.mark.parametrize("given", [".", "serve.yaml"])
def test_a_serve_file_with_flags_of_their_own_for_speculation(specfix: Run, project: Path, given: str) -> None:
    keys = {"model": TARGET, "spec-model": DRAFT, "spec-method": "eagle3", "spec-tokens": 5, "max-model-len": 8192}
    (project / "deploy" / "serve.yaml").write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))
    done = specfix("gate", given, "--engine", "vllm==0.26.0", *WHERE)
    assert done.returncode == 1 and "error[POS001]" in done.stdout


MENTIONS = {
    "comment.yaml": "# vllm: was served with --speculative-config '{}'\nname: ci\n",
    "map.yaml": "apiVersion: v1\nkind: ConfigMap\ndata:\n  args: vllm serve m --speculative-config '{}'\n",
    "other.yaml": "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nspec:\n"
    "  args: [vllm, --speculative-config, '{}']\n",
}


@pytest.mark.parametrize("command", [("gate", "."), ("check", "--launch", ".")])
def test_a_file_that_mentions_speculation_and_starts_nothing(
    specfix: Run, project: Path, command: tuple[str, ...]
) -> None:
    for name, text in MENTIONS.items():
        (project / "deploy" / name).write_text(text)
    scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: vllm}\n"
    (project / "deploy" / "scaler.yaml").write_text(scaler)
    done = specfix(*command)
    assert done.returncode == 0
    assert done.stdout.count("note: mentions speculation, and no launch was read in it") == len(MENTIONS)
    told = " ".join(done.stdout.split())
    assert "(comment.yaml:1)" in told and "(map.yaml:4)" in told and "(other.yaml:4)" in told
    assert 'kind "InferenceService" is not one whose pods are known' in told


def test_a_launch_named_by_itself_must_start_something(specfix: Run, project: Path) -> None:
    for name, why in (("map.yaml", "starts no vLLM server"), ("other.yaml", 'line 2: kind "InferenceService"')):
        (project / "deploy" / name).write_text(MENTIONS[name])
        done = specfix("check", "--launch", name)
        assert done.returncode == 2 and why in done.stderr


def test_a_file_that_is_not_there_is_no_pass(specfix: Run, project: Path) -> None:
    done = specfix("gate", "serve.yml")
    assert done.returncode == 2 and "unreadable  serve.yml: cannot be read" in done.stdout


UNFIT = {"large": b"#" * 2_000_001, "Latin-1": "# für\n".encode("latin-1"), "binary": b"\0\5\x16\7\0\2\0\0Mac OS X\xff"}


@pytest.mark.parametrize("content", UNFIT.values(), ids=UNFIT)
@pytest.mark.parametrize("name", ["pnpm-lock.yaml", "._run.sh"])
@pytest.mark.parametrize("given", [".", "*", "it"])
def test_a_file_that_is_no_text_matters_where_it_speaks_of_vllm(
    specfix: Run, project: Path, content: bytes, name: str, given: str
) -> None:
    deploy = project / "deploy"
    (deploy / "a.yaml").write_text(launch(1024))
    (deploy / name).write_bytes(content)
    files = {".": ["."], "*": [f"{name[:3]}*", "a.yaml"], "it": [name, "a.yaml"]}[given]
    done = specfix("gate", *files, *WHERE_26)
    assert done.returncode == 0 and "unreadable" not in done.stdout
    for said in (b"vLLM serve\n", "vllm serve\n".encode("utf-16-le")):
        (deploy / name).write_bytes(said + content)
        done = specfix("gate", *files, *WHERE_26)
        assert done.returncode == 2 and f"unreadable  {name}: " in done.stdout


@pytest.mark.parametrize("name", ["start", "uv.lock", "README"])
def test_a_file_of_any_name_that_is_no_text(specfix: Run, project: Path, name: str) -> None:
    """A script may bear a name without an end; other files are given to a gate because they were changed."""
    (project / "deploy" / name).write_bytes(b"vllm serve\n" + UNFIT["large"] if name == "uv.lock" else b"\xff")
    assert specfix("gate", name, *WHERE).returncode == 0
    (project / "deploy" / name).write_bytes(b"vllm serve \xff")
    assert specfix("gate", name, *WHERE).returncode == (0 if name == "uv.lock" else 2)
    assert specfix("gate", f"{name[:-1]}*", *WHERE).returncode == 0
    assert specfix("check", "--launch", name, *WHERE).returncode == 2


def test_a_folder_of_launches_holds_other_files_too(specfix: Run, project: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (project / "deploy" / name).write_text(launch(1024))
    (project / "deploy/lock.yaml").write_bytes(UNFIT["Latin-1"])
    assert specfix("check", "--launch", ".", *WHERE_26).returncode == 0
    assert specfix("check", "--launch", "lock.yaml", *WHERE_26).returncode == 2


def test_a_file_that_may_not_be_read_is_no_pass(specfix: Run, open_folder: Path) -> None:
    file = open_folder / "start"
    file.write_text("echo\n")
    assert specfix("gate", "start", *WHERE).returncode == 0
    file.chmod(0)
    with without_rights():
        done = specfix("gate", "start", *WHERE)
    assert done.returncode == 2 and "unreadable  start: cannot be read: Permission denied" in done.stdout


@pytest.mark.parametrize("name", ["absent", "broken", "broken.yaml", "loop", "loop/a.yaml", "pipe"])
@pytest.mark.parametrize("command", [("gate",), ("check", "--launch")])
def test_what_is_not_there_is_no_pass(specfix: Run, project: Path, command: tuple[str, ...], name: str) -> None:
    for link in ("broken", "broken.yaml"):
        Path(link).symlink_to("nowhere")
    Path("loop").symlink_to("loop")
    os.mkfifo("pipe")
    done = specfix(*command, name, *WHERE)
    assert done.returncode == 2 and f"{name}" in done.stdout + done.stderr
    assert "cannot be read" in done.stdout + done.stderr


@pytest.mark.parametrize("command", [("gate",), ("check", "--launch")])
def test_a_name_that_is_empty_is_not_this_folder(specfix: Run, project: Path, command: tuple[str, ...]) -> None:
    done = specfix(*command, "", *WHERE)
    assert (done.returncode, done.stdout) == (2, "") and "the name of a file is empty" in done.stderr


def test_gate_passes_over_what_starts_no_speculation(specfix: Run, project: Path) -> None:
    speculative = json.dumps({"method": "eagle3", "model": DRAFT})
    serve = f"model: {TARGET}\nmax-model-len: 8192\n"
    (project / "a.yaml").write_text(f"{serve}speculative-config: {speculative}\n")
    (project / "b.yaml").write_text(serve)
    (project / "c.yaml").write_text("name: CI\non: [push]\n")
    (project / "d.sh").write_text("echo hello\n")
    files = [str(project / name) for name in ("a.yaml", "b.yaml", "c.yaml", "d.sh")]
    where = ("--engine", "vllm==0.26.0", "--hardware", "h200", "--select", "POS001")
    done = specfix("gate", *files, *where)
    assert (done.returncode, done.stderr) == (1, "") and done.stdout.count("POS001") == 1 + done.stdout.count("explain")
    assert specfix("gate", *files[1:], *where).returncode == 0
    (project / "e.yaml").write_text("a: [\n")  # it may be anything
    assert specfix("gate", *files[1:], str(project / "e.yaml"), *where).returncode == 0
    (project / "e.yaml").write_text("vllm: [\n")
    assert specfix("gate", *files[1:], str(project / "e.yaml"), *where).returncode == 2
