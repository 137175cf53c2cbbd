"""A variable of a launch file changed, taken out or put on a path: every other byte stays."""

from __future__ import annotations

import pytest

from specfix.repair.edit.launch_file import Flag, PathEntry, Variable

from .launch_files import COMPOSE_LIST, DRAFT, FILES, POD, SCRIPT, SPEC, edited


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("run.sh", "VLLM_USE_V1=0", "VLLM_USE_V1=1"),
        ("text.yaml", "VLLM_USE_V1=0", "VLLM_USE_V1=1"),
        ("list.yaml", 'VLLM_USE_V1: "0"', 'VLLM_USE_V1: "1"'),
        ("pod.yaml", 'VLLM_USE_V1, value: "0"', 'VLLM_USE_V1, value: "1"'),
        ("script.yaml", 'value: "0"', 'value: "1"'),
    ],
)
def test_a_variables_value_changes_alone(name: str, old: str, new: str) -> None:
    assert edited(FILES[name], name, Variable("VLLM_USE_V1", "1")) == FILES[name].replace(old, new)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("run.sh", "VLLM_USE_V1=0 "),
        ("text.yaml", '      - "VLLM_USE_V1=0"\n'),
        ("list.yaml", ', VLLM_USE_V1: "0"'),
        ("pod.yaml", '        - {name: VLLM_USE_V1, value: "0"}\n'),
        ("script.yaml", '      env:\n        - name: VLLM_USE_V1\n          value: "0"\n'),
    ],
)
def test_a_variable_is_taken_out(name: str, gone: str) -> None:
    assert edited(FILES[name], name, Variable("VLLM_USE_V1", None)) == FILES[name].replace(gone, "")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("run.sh", "VLLM_USE_V1=0 exec", 'export PYTHONPATH="/o/shim${PYTHONPATH:+:$PYTHONPATH}"\nVLLM_USE_V1=0 exec'),
        ("text.yaml", '      - "VLLM_USE_V1=0"\n', '      - "VLLM_USE_V1=0"\n      - "PYTHONPATH=/o/shim"\n'),
        ("list.yaml", ': "0"}', ': "0", PYTHONPATH: /o/shim}'),
        ("pod.yaml", ', value: "0"}\n', ', value: "0"}\n        - name: PYTHONPATH\n          value: /o/shim\n'),
        ("script.yaml", ' value: "0"\n', ' value: "0"\n        - name: PYTHONPATH\n          value: /o/shim\n'),
    ],
)
def test_the_shim_is_put_on_the_path(name: str, old: str, new: str) -> None:
    after = edited(FILES[name], name, PathEntry("/o/shim"))
    assert after == FILES[name].replace(old, new)
    assert edited(after, name, PathEntry("/o/shim")) == after


def test_a_path_that_is_set_keeps_what_it_has() -> None:
    text = SCRIPT.replace("set -eu\n", 'export PYTHONPATH="$HOME/lib:/x"\n')
    assert edited(text, "run.sh", PathEntry("/o/shim")) == text.replace('"$HOME/lib', '/o/shim:"$HOME/lib')


def test_a_container_that_a_script_starts() -> None:
    text = (
        "docker run --rm -e VLLM_USE_V1=0 --env A=1 \\\n  vllm/vllm-openai:v0.26.0 --model=/m \\\n"
        f"  --speculative-config='{SPEC}'\n"
    )
    assert edited(text, "run.sh", PathEntry("/o/shim")) == text.replace(
        "  vllm/", "  -e PYTHONPATH=/o/shim \\\n  vllm/"
    )
    assert edited(text, "run.sh", Variable("VLLM_USE_V1", None)) == text.replace(" -e VLLM_USE_V1=0", "")
    assert edited(text, "run.sh", Variable("A", "2")) == text.replace("A=1", "A=2")
    assert edited(text, "run.sh", Flag("seed", 7)) == text.replace("5}'\n", "5}' \\\n  --seed=7\n")
    assert edited(text, "run.sh", DRAFT) == text.replace('"/d"', '"/o/draft"')


def test_a_section_for_variables_is_made_where_there_is_none() -> None:
    pod = POD.split("        # variables", maxsplit=1)[0]
    added = '        env:\n        - name: A\n          value: "1"\n'
    assert edited(pod, "pod.yaml", Variable("A", "1")) == pod.removesuffix("\n") + added + "\n"
    compose = COMPOSE_LIST.replace('    environment: {HF_TOKEN: abc, VLLM_USE_V1: "0"}\n', "    ports: []\n")
    assert edited(compose, "list.yaml", Variable("A", "1")) == compose.replace(
        "    ports", '    environment:\n      A: "1"\n    ports'
    )
