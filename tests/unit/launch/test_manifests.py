"""Servers in compose files, Kubernetes manifests, serve YAML and scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.errors import CannotCheck
from specfix.launch.command import Mount
from specfix.launch.manifests import Found, NoLaunch, read_launches

POD = """\
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}
      containers:
        - name: proxy
          image: nginx
        - name: vllm
          image: vllm/vllm-openai:v0.26.0
          args: ["--model", "org/m", "--max-model-len", "$(LEN)", "--seed=$(SEED)", "--x", "$$(Y)"]
          env:
            - {name: LEN, value: "8192"}
            - {name: SEED, valueFrom: {configMapKeyRef: {name: c, key: k}}}
          resources: {limits: {nvidia.com/gpu: 4}}
"""
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: llm}\nspec:\n  template:\n    spec:\n" + POD


def found(tmp_path: Path, text: str, name: str = "f.yaml") -> list[Found]:
    file = tmp_path / name
    file.write_text(text)
    return read_launches(file)


def words(one: Found) -> list[tuple[str, str | None]]:
    return [(word.text, word.unknown) for word in one.launch.arguments]


def test_kubernetes(tmp_path: Path) -> None:
    (one,) = found(tmp_path, DEPLOYMENT)
    assert one.name.endswith("f.yaml: Deployment llm")
    assert words(one) == [
        ("--model", None),
        ("org/m", None),
        ("--max-model-len", None),
        ("8192", None),
        ("--seed=$(SEED)", "$(SEED) from a configMapKeyRef"),
        ("--x", None),
        ("$(Y)", None),
    ]
    assert one.hardware and one.hardware.text == "NVIDIA-H200"
    assert {word.place.line for word in one.launch.arguments} == {13}


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "Job", "ReplicaSet"])
def test_other_kinds(tmp_path: Path, kind: str) -> None:
    assert len(found(tmp_path, DEPLOYMENT.replace("Deployment", kind))) == 1


def test_a_list_and_several_documents(tmp_path: Path) -> None:
    items = "\n".join(f"    {line}" for line in DEPLOYMENT.splitlines())
    listed = f"apiVersion: v1\nkind: List\nitems:\n  -\n{items}\n"
    assert len(found(tmp_path, listed)) == 1
    assert len(found(tmp_path, f"{DEPLOYMENT}---\napiVersion: v1\nkind: Service\n---\n{DEPLOYMENT}")) == 2


def test_a_shell_in_a_container(tmp_path: Path) -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - image: my/server:1
      command: ["sh", "-c"]
      args:
        - |
          export A=1
          exec vllm serve org/m \\
            --seed $SEED
"""
    (one,) = found(tmp_path, text)
    assert words(one) == [("org/m", None), ("--seed", None), ("$SEED", "$SEED")]
    assert one.launch.env["A"].text == "1"
    assert [word.place.line for word in one.launch.arguments] == [11, 12, 12]


COMPOSE = """\
services:
  db: {image: postgres}
  llm:
    image: vllm/vllm-openai:v0.26.0
    environment: [A=1, "B=${B}", C]
    command: >-
      --model org/m --max-model-len ${LEN:-4096}
      --speculative-config '{"method": "mtp"}'
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2}]}}}
"""


def test_compose(tmp_path: Path) -> None:
    (one,) = found(tmp_path, COMPOSE)
    assert words(one) == [
        ("--model", None),
        ("org/m", None),
        ("--max-model-len", None),
        ("${LEN:-4096}", "${LEN:-4096}"),
        ("--speculative-config", None),
        ('{"method": "mtp"}', None),
    ]
    env = {name: (word.text, word.unknown) for name, word in one.launch.env.items()}
    assert env["A"] == ("1", None) and env["B"] == ("${B}", "${B}") and env["C"][1] == "$C"
    assert {word.text: word.place.line for word in one.launch.arguments} == {
        **dict.fromkeys(("--model", "org/m", "--max-model-len", "${LEN:-4096}"), 7),
        **dict.fromkeys(("--speculative-config", '{"method": "mtp"}'), 8),
    }


CONTAINER = """\
services:
  llm:
    image: vllm/vllm-openai:v0.26.0
    env_file: [a.env, {path: b.env, required: false}]
    volumes:
      - ./models:/models:ro
      - {type: bind, source: /cfg, target: /etc/vllm}
      - {type: volume, source: v, target: /v}
      - $HOME/x:/x
      - named:/n
    command:
      - vllm
      - serve
      - /models/m
"""


def test_a_composed_container(tmp_path: Path) -> None:
    (one,) = found(tmp_path, CONTAINER)
    assert one.launch.mounts == (
        Mount("/models", f"{tmp_path}/./models"),
        Mount("/etc/vllm", "/cfg"),
        *(Mount("/v", None), Mount("/x", None), Mount("/n", None)),
    )
    assert one.launch.env_files == (f"{tmp_path}/a.env", f"{tmp_path}/b.env")
    assert [word.text for word in one.launch.doubled] == ["vllm", "serve"]
    (one,) = found(tmp_path, CONTAINER.replace("    command:", "    entrypoint: []\n    command:"))
    assert one.launch.doubled == ()


def test_variables_that_are_not_in_a_manifest(tmp_path: Path) -> None:
    more = "          envFrom: [{configMapRef: {name: c}}, {secretRef: {name: s}}]\n"
    (one,) = found(tmp_path, DEPLOYMENT + more)
    assert one.launch.env_from == ("configMapRef c", "secretRef s") and one.launch.mounts == ()


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (">\n      vllm serve org/m\n      --x 1\n      --y\n", [8, 9, 9, 10]),
        (">-\n      vllm serve\n      org/m --x\n      1 --y\n", [9, 9, 10, 10]),
        ("vllm serve org/m\n      --x 1\n      --y\n", [7, 8, 8, 9]),
        ("'vllm serve org/m\n      --x 1\n      --y'\n", [7, 8, 8, 9]),
        ('"vllm serve org/m \\\n      --x 1\n      --y"\n', [7, 8, 8, 9]),
    ],
)
def test_folded_lines(tmp_path: Path, written: str, lines: list[int]) -> None:
    pod = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: my/vllm:1\n    command: [sh, -c]\n    args:\n"
    text = f"{pod}    - {written}"
    (one,) = found(tmp_path, text)
    assert [word.text for word in one.launch.arguments] == ["org/m", "--x", "1", "--y"]
    assert [word.place.line for word in one.launch.arguments] == [line + 1 for line in lines]


def test_variables_of_a_manifest_that_grow_are_refused(tmp_path: Path) -> None:
    doubled = "".join(f"            - {{name: A{n + 1}, value: '$(A{n})$(A{n})'}}\n" for n in range(40))
    text = DEPLOYMENT.replace("          env:\n", "          env:\n            - {name: A0, value: aa}\n" + doubled)
    with pytest.raises(CannotCheck, match="a variable stands for more than"):
        found(tmp_path, text)


def test_a_serve_yaml_stands_for_its_config_file(tmp_path: Path) -> None:
    (one,) = found(tmp_path, "model: org/m\nmax-model-len: 8k\n")
    assert words(one) == [("--config", None), (str(tmp_path / "f.yaml"), None)]


def test_a_script(tmp_path: Path) -> None:
    assert len(found(tmp_path, "#!/bin/sh\nvllm serve org/m\n", "run.sh")) == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [("echo", "run.sh"), ("services: {db: {image: postgres}}", "c.yaml"), ("[]", "l.yaml"), ("", "e.yaml")],
)
def test_a_file_that_starts_none(tmp_path: Path, text: str, name: str) -> None:
    with pytest.raises(NoLaunch, match="starts no vLLM server that can be recognised"):
        found(tmp_path, text, name)


def test_a_kind_that_is_not_known(tmp_path: Path) -> None:
    text = "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nspec: {image: vllm}\n"
    with pytest.raises(CannotCheck, match=r"line 2: kind .InferenceService. is not one whose pods are known"):
        found(tmp_path, text)
