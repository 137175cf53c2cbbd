"""Which server a command starts."""

from __future__ import annotations

import pytest

from specfix.launch.command import Launch, launches
from specfix.launch.words import commands


def found(command: str) -> list[Launch]:
    return [launch for each in commands(command, "run.sh") for launch in launches(each.words, each.env)]


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
    ],
)
def test_the_server_is_found(command: str, expected: tuple[str, str, str | None]) -> None:
    (launch,) = found(command)
    assert told(launch) == expected


@pytest.mark.parametrize(
    "command",
    [
        *("echo vllm serve m", "vllm bench serve", "vllm --help", "python train.py vllm serve m", "bash run.sh"),
        *("docker run vllm/vllm-router:v1 --port 1", "docker run me/vllm-exporter --listen x"),
        *("docker run postgres", "docker build .", "docker run my/server:1 --model m", "python -c 'x'", "A=1"),
    ],
)
def test_what_starts_none(command: str) -> None:
    assert found(command) == []


def test_variables_of_a_container() -> None:
    (launch,) = found(f"docker run -e A=1 --env B=$X -eC=3 -e HF_TOKEN --gpus 2 {OPENAI} org/m --x")
    env = {name: (word.text, word.unknown) for name, word in launch.env.items()}
    assert env == {"A": ("1", None), "B": ("$X", "$X"), "C": ("3", None), "HF_TOKEN": ("$HF_TOKEN", "$HF_TOKEN")}
    assert launch.gpus is not None and launch.gpus.text == "2"


def test_several_in_one_script() -> None:
    assert [told(launch)[1] for launch in found("vllm serve a &\nvllm serve b --port 2")] == ["a", "b --port 2"]
