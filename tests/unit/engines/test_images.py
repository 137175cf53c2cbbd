"""Which release an image's tag states, and which tags state none. The tags are of images that exist, or their like."""

from __future__ import annotations

import pytest

from specfix.engines.images import parse_image
from specfix.errors import CannotCheck

DIGEST = "@sha256:" + "0f" * 32


def release(reference: str) -> str:
    image = parse_image(reference)
    assert image is not None
    return image.release()


@pytest.mark.parametrize(
    "reference",
    [
        "vllm/vllm-openai:v0.26.0",
        "vllm/vllm-openai:0.26.0",
        f"vllm/vllm-openai:v0.26.0{DIGEST}",
        "vllm/vllm-openai:v0.26.0-x86_64",
        "vllm/vllm-openai:v0.26.0-cu130-ubuntu2404",
        "vllm/vllm-openai:v0.26.0-aarch64-cu130-ubuntu2404",
        "docker.io/vllm/vllm-openai-rocm:v0.26.0",
        "vllm/vllm-openai-cpu:v0.26.0-arm64",
        "registry.example:5000/team/mirror/vllm-openai:v0.26.0",
        "localhost:5000/vllm-openai:v0.26.0",
        "public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v0.26.0",
        "public.ecr.aws/q9t5s3a7/vllm-arm64-cpu-release-repo:v0.26.0",
        "rocm/vllm:rocm7.13.0_gfx950-dcgpu_ubuntu24.04_py3.13_pytorch_2.10.0_vllm_0.26.0",
        "rocm/vllm:rocm6.3.1_vllm0.26.0_20250521",
        "team/serving:cuda13-vllm-v0.26.0",
    ],
)
def test_a_tag_that_states_a_release(reference: str) -> None:
    assert release(reference) == "0.26.0"


@pytest.mark.parametrize(
    ("tag", "version"),
    [("v0.26.0rc1", "0.26.0rc1"), ("v0.26.0-rc2", "0.26.0-rc2"), ("v0.26.0.post1-cu130", "0.26.0.post1")],
)
def test_what_is_no_final_release_is_not_taken_for_one(tag: str, version: str) -> None:
    assert release(f"vllm/vllm-openai:{tag}") == version


@pytest.mark.parametrize(
    "reference",
    [
        "vllm/vllm-openai",
        f"vllm/vllm-openai{DIGEST}",
        "vllm/vllm-openai:latest",
        "vllm/vllm-openai:latest-aarch64",
        "vllm/vllm-openai:nightly",
        "vllm/vllm-openai:nightly-7f1a5398e9610d96c473931a26c0e12bbe0d0423",
        "vllm/vllm-openai:7f1a5398e9610d96c473931a26c0e12bbe0d0423-x86_64",
        "vllm/vllm-openai-rocm:kimi-k3",
        "vllm/vllm-openai:v0.26.0-otel-lmcache",  # somebody's change
        "vllm/vllm-openai:v0.26.0-1",
        "vllm/vllm-openai:v0.26.0-12-gabcdef0",
        "vllm/vllm-openai:v0",
        "rocm/vllm:rocm7.14.0",
        "rocm/vllm:rocm7.0_vllm_qwen3coder_next",
        "example.amazonaws.com/vllm:server-cuda-v1",
    ],
)
def test_a_tag_that_states_none_is_refused_with_what_to_do(reference: str) -> None:
    with pytest.raises(CannotCheck, match=r"which release of vLLM it holds; give that one \(--engine vllm==X"):
        release(reference)


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("my-app:0.26.0", "my-app"),
        ("team/my-vllm:0.26.0", "my-vllm"),
        ("quay.io/ascend/vllm-ascend:v0.26.0", "vllm-ascend"),
        ("vllm-router:v0.26.0-cu130", "vllm-router"),
    ],
)
def test_a_tag_that_may_be_a_version_of_something_else(reference: str, name: str) -> None:
    with pytest.raises(CannotCheck, match=rf"may be a version of {name}, .* give --engine vllm==0\.26\.0"):
        release(reference)


@pytest.mark.parametrize(
    "text", ["sglang", "vllm", "./x", "some/folder", "C:/x", "a b:1", "/vllm/vllm:1", "UPPER/Case:1/", "x" * 5000]
)
def test_what_is_no_reference(text: str) -> None:
    assert parse_image(text) is None
