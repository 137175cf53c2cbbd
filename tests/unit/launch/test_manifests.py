"""Servers in compose files, Kubernetes manifests, serve YAML and scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.errors import CannotCheck
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
    assert (one.hardware and one.hardware.text, one.devices) == ("NVIDIA-H200", 4)
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
    assert one.devices == 2


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
