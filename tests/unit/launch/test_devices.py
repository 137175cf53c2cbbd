"""How many GPUs a launch hands to its container."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.launch.manifests import read_launches
from specfix.launching import from_command

MODELS = "org/m --max-model-len 8"
POD = """\
apiVersion: v1
kind: Pod
spec:
  containers:
    - image: vllm/vllm-openai:v0.26.0
      args: [org/m, --max-model-len, "8"]
      resources: {}
"""
SERVICE = """\
services:
  llm:
    image: vllm/vllm-openai:v0.26.0
    command: org/m --max-model-len 8
    {}
"""
RESERVED = "deploy: {{resources: {{reservations: {{devices: [{}]}}}}}}"


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ("--gpus 2", 2),
        ("--gpus=count=3", 3),
        ("--gpus all", None),
        ("--gpus '\"device=0,2\"'", 2),
        ("--gpus device=GPU-3a23c669-1f69-c64e-cf85-44e9b07e7a2a", 1),
        ('--gpus \'"device=0,2","capabilities=compute"\'', None),
        ("--gpus $COUNT", None),
        ("--gpus 0", None),
        ("--device nvidia.com/gpu=0 --device nvidia.com/gpu=1", 2),
        ("--device nvidia.com/gpu=all", None),
        ("--device /dev/fuse", None),
        ("--rm", None),
    ],
)
def test_docker(options: str, count: int | None) -> None:
    handed = from_command(f"docker run {options} vllm/vllm-openai:v0.26.0 {MODELS}").launch.devices
    assert (handed and handed.count) == count
    if handed is not None:
        assert handed.place.pointer == options.replace("=", " ").split()[0]


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (RESERVED.format("{driver: nvidia, count: 2}"), 2),
        (RESERVED.format("{capabilities: [gpu], count: 2}"), 2),
        (RESERVED.format("{driver: nvidia, device_ids: ['0', '3', '4']}"), 3),
        (RESERVED.format("{driver: nvidia, device_ids: ['0']}, {driver: nvidia, count: 1}"), 2),
        (RESERVED.format("{driver: nvidia, count: all}"), None),
        (RESERVED.format("{driver: nvidia, count: '${COUNT:-2}'}"), None),
        (RESERVED.format("{driver: nvidia, device_ids: ['${ID}']}"), None),
        (RESERVED.format("{driver: nvidia, capabilities: [gpu]}"), None),
        (RESERVED.format("{driver: cdi, device_ids: ['x/y=0']}"), None),
        ("gpus: [{driver: nvidia, count: 1}]", 1),
        ("gpus: all", None),
        ("deploy: {}", None),
    ],
)
def test_compose(tmp_path: Path, given: str, count: int | None) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(SERVICE.replace("{}", given))
    (found,) = read_launches(file)
    assert (found.launch.devices and found.launch.devices.count) == count
    assert found.launch.devices is None or found.launch.devices.place.line == 5


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        ("{limits: {nvidia.com/gpu: 2}}", 2),
        ("{limits: {nvidia.com/gpu: '4'}, requests: {cpu: 1}}", 4),
        ("{requests: {nvidia.com/gpu: 1}}", 1),
        ("{limits: {nvidia.com/gpu: '{{ gpus }}'}}", None),
        ("{limits: {memory: 8Gi}}", None),
        ("{limits: {nvidia.com/mig-1g.5gb: 1}}", None),
        ("{}", None),
    ],
)
def test_kubernetes(tmp_path: Path, resources: str, count: int | None) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(POD.replace("{}", resources))
    (found,) = read_launches(file)
    handed = found.launch.devices
    assert (handed and handed.count) == count
    assert handed is None or (handed.place.line, handed.place.pointer) == (7, "nvidia.com/gpu")
