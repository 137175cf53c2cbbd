"""What cannot be changed in a launch file is left, and told with its line and what to write there by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.engines.find import find_engine
from specfix.launching import stated
from specfix.repair.edit.launch_file import Flag, LaunchFile, PathEntry, Variable
from specfix.repair.edit.written import CannotEdit

from .launch_files import COMPOSE_LIST, DRAFT, POD, SCRIPT, SERVE, SPEC, TOKENS, edited


def test_what_a_variable_makes_is_left_and_named() -> None:
    text = (
        "DRAFT=/d\nLEN=8192\nvllm serve /m --max-model-len $LEN \\\n"
        """ --speculative-config '{"model": "'$DRAFT'", "method": "eagle3", "num_speculative_tokens": 5}'\n"""
    )
    with pytest.raises(CannotEdit, match=r"run.sh, line 3: '8192' comes from \$LEN; write --max-model-len 4096 there"):
        edited(text, "run.sh", Flag("max-model-len", 4096))
    with pytest.raises(CannotEdit, match=r"line 4: '/d' comes from \$DRAFT; write \"model\": \"/o/draft\" in --spec"):
        edited(text, "run.sh", DRAFT)
    assert edited(text, "run.sh", TOKENS) == text.replace(": 5}", ": 3}")
    with pytest.raises(CannotEdit, match=r"\$MAX"):
        edited(SCRIPT.replace("8192", "$MAX"), "run.sh", Flag("max-model-len", 4096))


def test_what_stands_in_several_places_is_left() -> None:
    text = (
        "x-args: &len 8192\nservices:\n  llm:\n    image: vllm/vllm-openai:v0.26.0\n    command:\n"
        "    - --max-model-len\n"
        f"    - *len\n    - --seed\n    - *len\n    - --speculative-config\n    - '{SPEC}'\n"
    )
    with pytest.raises(
        CannotEdit, match=r"line 6: .* line 1 is used in several places.*; write --max-model-len 4096 there by hand"
    ):
        edited(text, "compose.yaml", Flag("max-model-len", 4096))
    assert edited(text, "compose.yaml", DRAFT) == text.replace('"/d"', '"/o/draft"')


def test_what_is_there_for_an_alias_is_used_once() -> None:
    text = (
        f"x-base: &base\n  image: vllm/vllm-openai:v0.26.0\n  command: [--model, /m, --speculative-config, '{SPEC}']\n"
        "  environment: &env {A: b}\nservices:\n  llm:\n    <<: *base\n    ports: []\n"
    )
    assert edited(text, "compose.yaml", DRAFT) == text.replace('"/d"', '"/o/draft"')
    assert edited(text, "compose.yaml", Variable("A", "c")) == text.replace("A: b", "A: c")
    assert edited(text, "compose.yaml", PathEntry("/o/shim")) == text.replace("A: b", "A: b, PYTHONPATH: /o/shim")
    twice = text + "  other: {image: nginx, environment: *env}\n"
    assert edited(twice, "compose.yaml", DRAFT) == twice.replace('"/d"', '"/o/draft"')
    for edit in (Variable("A", "c"), PathEntry("/o/shim")):
        with pytest.raises(CannotEdit, match="line 4 is used in several places"):
            edited(twice, "compose.yaml", edit)
    with pytest.raises(CannotEdit, match="line 1 is used in several places"):
        edited(text + "  other: {<<: *base}\n", "compose.yaml", DRAFT)


def test_a_kubernetes_variable_is_left() -> None:
    text = POD.replace("=8192", "=$(LEN)").replace(
        "        env:\n", '        env:\n        - {name: LEN, value: "8192"}\n'
    )
    with pytest.raises(CannotEdit, match=r"pod.yaml, line 14: "):
        edited(text, "pod.yaml", Flag("max-model-len", 4096))
    with pytest.raises(CannotEdit, match=r"pod.yaml, line 22: .*; write HF_TOKEN=x there by hand"):
        edited(text, "pod.yaml", Variable("HF_TOKEN", "x"))


def test_a_serve_yaml_sets_no_variables() -> None:
    with pytest.raises(CannotEdit, match="such a file sets no variables"):
        edited(SERVE, "serve.yaml", PathEntry("/o/shim"))


def test_a_variable_of_another_file_is_left(tmp_path: Path) -> None:
    (tmp_path / "serve.env").write_text("# ours\nVLLM_USE_V1=0\n")
    text = COMPOSE_LIST.split("    environment", maxsplit=1)[0] + "    env_file: serve.env\n"
    file = LaunchFile(tmp_path / "compose.yaml", text, 0, find_engine("vllm==0.26.0"), stated)
    with pytest.raises(
        CannotEdit, match=r"VLLM_USE_V1 is set in .*serve.env, line 2; write no VLLM_USE_V1 there by hand"
    ):
        file.edited([Variable("VLLM_USE_V1", None)])
    assert file.edited([DRAFT]).text == text.replace('"/d"', '"/o/draft"')


def test_a_container_that_runs_already_gets_no_variable() -> None:
    text = f"docker exec llm vllm serve /m --speculative-config '{SPEC}'\n"
    with pytest.raises(CannotEdit, match="the container is started elsewhere"):
        edited(text, "run.sh", PathEntry("/o/shim"))
    assert edited(text, "run.sh", DRAFT) == text.replace('"/d"', '"/o/draft"')


def test_options_in_another_file_are_left(tmp_path: Path) -> None:
    config = tmp_path / "serve.yaml"
    config.write_text(SERVE)
    text = f"vllm serve /m --config {config}\n"
    with pytest.raises(
        CannotEdit, match=r'serve.yaml, line 5: write "model": "/o/draft" in --speculative-config there'
    ):
        edited(text, "run.sh", DRAFT)
    assert edited(text, "run.sh", Flag("max-model-len", 4096)) == text.replace("\n", " --max-model-len 4096\n")
