"""Which server a command starts."""

from __future__ import annotations

import pytest

from specfix.launch.command import Launch, Mount, launches_of, outside
from specfix.launch.script import commands


def found(command: str) -> list[Launch]:
    return list(launches_of(commands(command, "run.sh")))


def told(launch: Launch) -> tuple[str, str, str | None]:
    words = " ".join(word.text for word in launch.arguments)
    return launch.program, words, launch.image.text if launch.image else None


OPENAI = "vllm/vllm-openai:v0.26.0"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("vllm serve m --x 1", ("vllm serve", "m --x 1", None)),
        ("/opt/venv/bin/vllm serve m", ("vllm serve", "m", None)),
        ("A=1 env B=2 sudo -E nohup vllm serve m", ("vllm serve", "m", None)),
        ("numactl -N 0 --membind=0 vllm serve m", ("vllm serve", "m", None)),
        ("timeout 10 vllm serve m", ("vllm serve", "m", None)),
        ("python3 -u -m vllm.entrypoints.openai.api_server --model m", ("api_server", "--model m", None)),
        ("python -m vllm.entrypoints.cli.main serve m", ("vllm serve", "m", None)),
        ("python3.12 /opt/venv/bin/vllm serve m", ("vllm serve", "m", None)),
        ("bash -lc 'cd /x && exec vllm serve m'", ("vllm serve", "m", None)),
        (f"docker run --rm -it --gpus all -v a:b -p1:1 {OPENAI} --model m", ("api_server", "--model m", OPENAI)),
        (f"docker run --gpus=all --ipc host {OPENAI} org/m --x 1", ("vllm serve", "org/m --x 1", OPENAI)),
        (f"podman run -d --entrypoint vllm {OPENAI} serve m", ("vllm serve", "m", OPENAI)),
        (f"docker run --entrypoint='' {OPENAI} vllm serve m", ("vllm serve", "m", OPENAI)),
        ("docker run my/server:1 vllm serve m", ("vllm serve", "m", "my/server:1")),
        (f"nerdctl run {OPENAI} sh -c 'vllm serve m'", ("vllm serve", "m", OPENAI)),
        ("docker exec -it -w /x box vllm serve m", ("vllm serve", "m", None)),
        (f"docker run {OPENAI} serve org/m", ("vllm serve", "org/m", OPENAI)),
        ("uv run --with vllm==0.26.0 vllm serve m", ("vllm serve", "m", None)),
        ("uvx vllm@0.26.0 serve m", ("vllm serve", "m", None)),
        ("conda run --no-capture-output -n vllm vllm serve m", ("vllm serve", "m", None)),
        ("sudo -u vllm vllm serve m", ("vllm serve", "m", None)),
        ("tini -s -- vllm serve m", ("vllm serve", "m", None)),
        ("srun -N 1 --gres=gpu:4 bash -c 'vllm serve m'", ("vllm serve", "m", None)),
        ("mpirun -np 2 python3 -m vllm.entrypoints.openai.api_server --model m", ("api_server", "--model m", None)),
        ("ray job submit --runtime-env-json '{}' -- vllm serve m", ("vllm serve", "m", None)),
        (f"apptainer exec --nv docker://{OPENAI} vllm serve m", ("vllm serve", "m", OPENAI)),
        ("singularity exec -B /a:/b v.sif vllm serve m", ("vllm serve", "m", "v.sif")),
        (f"kubectl run x --image={OPENAI} --env=A=1 -- --model m", ("api_server", "--model m", OPENAI)),
        (f"kubectl run x --image {OPENAI} --command -- vllm serve m", ("vllm serve", "m", OPENAI)),
        ("kubectl exec -it x -- vllm serve m", ("vllm serve", "m", None)),
        ("ssh -p 22 host 'cd /x; vllm serve m'", ("vllm serve", "m", None)),
        ("ssh host vllm serve m", ("vllm serve", "m", None)),
        ("tmux new -d -s v 'vllm serve m'", ("vllm serve", "m", None)),
        ("eval 'vllm serve m'", ("vllm serve", "m", None)),
        ("CMD='vllm serve m'\n$CMD --x 1", ("vllm serve", "m --x 1", None)),
        ('CMD=(vllm serve m)\n"${CMD[@]}" > log 2>&1 &', ("vllm serve", "m", None)),
        ("$PYTHON -u -m vllm.entrypoints.openai.api_server --model m", ("api_server", "--model m", None)),
        ('"$VENV/bin/vllm" serve m', ("vllm serve", "m", None)),
    ],
)
def test_the_server_is_found(command: str, expected: tuple[str, str, str | None]) -> None:
    (launch,) = found(command)
    assert told(launch) == expected


@pytest.mark.parametrize(
    "command",
    [
        *("srun echo vllm", "uv pip install vllm", "conda activate vllm", "ssh host", "kubectl logs vllm", "$X serve"),
        *("echo vllm serve m", "vllm bench serve", "vllm --help", "python train.py vllm serve m", "bash run.sh"),
        *("docker run vllm/vllm-router:v1 --port 1", "docker run me/vllm-exporter --listen x"),
        *("docker run postgres", "docker build .", "docker run my/server:1 --model m", "python -c 'x'", "A=1"),
    ],
)
def test_what_starts_none(command: str) -> None:
    assert found(command) == []


def test_variables_of_a_container() -> None:
    (launch,) = found(f"docker run -e A=1 --env B=$X -eC=3 -e HF_TOKEN {OPENAI} org/m --x")
    env = {name: (word.text, word.unknown) for name, word in launch.env.items()}
    assert env == {"A": ("1", None), "B": ("$X", "$X"), "C": ("3", None), "HF_TOKEN": ("$HF_TOKEN", "$HF_TOKEN")}


def test_what_a_container_sees_of_its_machine() -> None:
    (launch,) = found(
        "docker run -v /data/models:/models:ro -v cache:/root/.cache --mount type=bind,source=/c,target=/etc/vllm "
        f"--mount type=volume,source=v,dst=/v -v $X:/x --env-file a.env {OPENAI} --model /models/m"
    )
    assert launch.env_files == ("a.env",) and launch.mounts is not None
    seen = {
        "/models/m": "/data/models/m",
        "/models": "/data/models",
        "/etc/vllm/s.yaml": "/c/s.yaml",
        **dict.fromkeys(("/modelsx", "/root/.cache/x", "/x/y", "/v/z", "/models/../m", "m")),
    }
    assert {path: outside(path, launch.mounts) for path in seen} == seen
    assert outside("/a/b/c", [Mount("/a", "/1"), Mount("/a/b", None)]) is None  # the nearest counts


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"docker run {OPENAI} vllm serve m", ["vllm", "serve"]),
        (f"docker run {OPENAI} serve org/m", ["serve"]),
        (f"docker run {OPENAI} bash -c 'vllm serve m'", ["bash"]),
        (f"kubectl run x --image={OPENAI} -- vllm serve m", ["vllm", "serve"]),
        (f"docker run --entrypoint vllm {OPENAI} serve m", []),
        (f"docker run --entrypoint '' {OPENAI} vllm serve m", []),
        (f"docker run {OPENAI} --model m", []),
        ("docker run rocm/vllm:rocm7 vllm serve m", []),  # what its entry point is nobody says
        (f"kubectl run x --image={OPENAI} --command -- vllm serve m", []),
    ],
)
def test_what_the_image_starts_by_itself_is_not_said_again(command: str, words: list[str]) -> None:
    (launch,) = found(command)
    assert [word.text for word in launch.doubled] == words


@pytest.mark.parametrize(
    ("command", "elsewhere", "sees"),
    [
        ("vllm serve m", False, True),
        ("srun vllm serve m", True, True),
        ("ssh host vllm serve m", True, False),
        ("ray job submit -- vllm serve m", True, False),
        ("docker exec box vllm serve m", False, False),
    ],
)
def test_where_it_will_run(command: str, elsewhere: bool, sees: bool) -> None:
    (launch,) = found(command)
    assert (launch.elsewhere, launch.mounts is None) == (elsewhere, sees)


@pytest.mark.parametrize(
    "start", ['X=\'bash -c "$X; $X"\'\nexport X\nbash -c "$X"', "A='eval $A; eval $A'\neval \"$A\""]
)
def test_a_script_that_starts_itself_comes_to_an_end(start: str) -> None:
    assert found(start) == []


def test_several_in_one_script() -> None:
    assert [told(launch)[1] for launch in found("vllm serve a &\nvllm serve b --port 2")] == ["a", "b --port 2"]
