"""A launch file with a value changed: every other byte stays, and what cannot be changed is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.engines.find import find_engine
from specfix.launching import stated
from specfix.repair.edit.launch_file import Edit, Flag, Key, LaunchFile, Model, PathEntry, Variable
from specfix.repair.edit.written import CannotEdit

SPEC = '{"method": "eagle3", "model": "/d", "num_speculative_tokens": 5}'
DRAFT = Key("speculative-config", "/model", "/o/draft")
TOKENS = Key("speculative-config", "/num_speculative_tokens", 3)
SERVE = f"""\
# how we serve
model: "/m"   # the target

max-model-len: 8192 # tokens
speculative-config: {SPEC}
# the end
enforce-eager: true
"""
SCRIPT = f"""\
#!/bin/bash
set -eu
export  HF_TOKEN=abc   # secret
VLLM_USE_V1=0 exec   vllm serve /m \\
    --max-model-len 8192 \\
    --enforce-eager \\
    --speculative-config '{SPEC}' \\
    --port 8000 > log 2>&1  # done
"""
COMPOSE_TEXT = f"""\
services:
  llm:
    image: vllm/vllm-openai:v0.26.0
    command: >-
      --model /m
      --max-model-len 8192   --enforce-eager
      --speculative-config '{SPEC}'
    environment:
      # ours
      - HF_TOKEN=abc
      - "VLLM_USE_V1=0"
    ports: ["8000:8000"]
"""
COMPOSE_LIST = f"""\
services:
  llm:
    image: vllm/vllm-openai:v0.26.0
    command: [ "--model", "/m", "--max-model-len", "8192", "--enforce-eager",
               "--speculative-config", '{SPEC}' ]  # all of it
    environment: {{HF_TOKEN: abc, VLLM_USE_V1: "0"}}
"""
POD = f"""\
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: llm}}
spec:
  template:
    spec:
      containers:
      - name: vllm   # the server
        image: vllm/vllm-openai:v0.26.0
        args:
        - --model
        - /m
        - --max-model-len=8192   # tokens
        - --enforce-eager
        - --speculative-config
        - '{SPEC}'

        # variables
        env:
        - name: HF_TOKEN
          valueFrom: {{secretKeyRef: {{name: hf, key: t}}}}
        - {{name: VLLM_USE_V1, value: "0"}}
        ports:
        - containerPort: 8000
...
"""
POD_SCRIPT = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: llm}}
spec:
  containers:
    - image: vllm/vllm-openai:v0.26.0
      name: vllm
      command: ["/bin/bash", "-c"]
      args:
        - |-
          set -e
          # now
          vllm serve /m \\
            --max-model-len 8192 --enforce-eager \\
            --speculative-config '{SPEC}' \\
            --port 8000
      env:
        - name: VLLM_USE_V1
          value: "0"
"""
FILES = {
    "serve.yaml": SERVE,
    "run.sh": SCRIPT,
    "text.yaml": COMPOSE_TEXT,
    "list.yaml": COMPOSE_LIST,
    "pod.yaml": POD,
    "script.yaml": POD_SCRIPT,
}


def launch_file(text: str, name: str = "run.sh", engine: str = "vllm==0.26.0") -> LaunchFile:
    return LaunchFile(Path(name), text, 0, find_engine(engine), stated)


def edited(text: str, name: str, *edits: Edit, engine: str = "vllm==0.26.0") -> str:
    return launch_file(text, name, engine).edited(edits).text


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went, and those that came; all others stand in their order."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    first = next(
        (at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), min(len(old), len(new))
    )
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    return [line.strip() for line in old[first : len(old) - last]], [
        line.strip() for line in new[first : len(new) - last]
    ]


@pytest.mark.parametrize(
    ("name", "eol"),
    [(name, eol) for name in FILES for eol in ("\n", "\r\n") if (name, eol) != ("run.sh", "\r\n")],  # no shell reads it
)
def test_a_key_of_the_speculative_config_changes_alone(name: str, eol: str) -> None:
    text = FILES[name].replace("\n", eol)
    assert edited(text, name, DRAFT) == text.replace('"/d"', '"/o/draft"')
    assert edited(text, name, TOKENS, DRAFT) == text.replace('"/d"', '"/o/draft"').replace(": 5}", ": 3}")
    gone = edited(text, name, Key("speculative-config", "/method", None))
    assert gone == text.replace('"method": "eagle3", ', "")
    more = edited(text, name, Key("speculative-config", "/moe_backend", "auto"))
    assert more == text.replace(": 5}", ': 5, "moe_backend": "auto"}')


@pytest.mark.parametrize("name", FILES)
def test_nothing_to_edit_leaves_the_file(name: str) -> None:
    assert edited(FILES[name], name) == FILES[name]
    same = edited(FILES[name], name, Flag("max-model-len", 8192), Key("speculative-config", "/method", "eagle3"))
    assert same == FILES[name]
    assert edited(FILES[name], name, Flag("block-size", None), Variable("NOT_THERE", None)) == FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_a_flags_value_changes_alone(name: str) -> None:
    assert edited(FILES[name], name, Flag("max-model-len", 4096)) == FILES[name].replace("8192", "4096")


@pytest.mark.parametrize("name", FILES)
def test_the_model_changes_alone(name: str) -> None:
    after = edited(FILES[name], name, Model("/o/target"))
    old, new = changed(FILES[name], after)
    assert len(old) == len(new) == 1 and after.replace("/o/target", "/m") == FILES[name]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("serve.yaml", "enforce-eager: true\n"),
        ("run.sh", "    --enforce-eager \\\n"),
        ("text.yaml", "   --enforce-eager"),
        ("list.yaml", ', "--enforce-eager"'),
        ("pod.yaml", "        - --enforce-eager\n"),
        ("script.yaml", " --enforce-eager"),
    ],
)
def test_a_flag_goes_with_what_set_it_apart(name: str, line: str) -> None:
    assert edited(FILES[name], name, Flag("enforce-eager", None)) == FILES[name].replace(line, "")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("serve.yaml", f"{SPEC}\n", f"{SPEC}\nmax-num-seqs: 8\n"),
        ("run.sh", f"'{SPEC}' \\\n", f"'{SPEC}' \\\n    --max-num-seqs 8 \\\n"),
        ("text.yaml", f"'{SPEC}'\n", f"'{SPEC}' --max-num-seqs 8\n"),
        ("list.yaml", f"'{SPEC}' ]", f"'{SPEC}',\n               \"--max-num-seqs\", '8' ]"),
        ("pod.yaml", f"- '{SPEC}'\n", f"- '{SPEC}'\n        - --max-num-seqs\n        - '8'\n"),
        ("script.yaml", f"'{SPEC}' \\\n", f"'{SPEC}' \\\n            --max-num-seqs 8 \\\n"),
    ],
)
def test_a_new_flag_stands_behind_the_speculative_config(name: str, old: str, new: str) -> None:
    assert edited(FILES[name], name, Flag("max-num-seqs", 8)) == FILES[name].replace(old, new)


@pytest.mark.parametrize("name", FILES)
def test_switches(name: str) -> None:
    off = edited(FILES[name], name, Flag("enforce-eager", False))
    if name == "serve.yaml":
        assert off.replace("no-enforce-eager", "enforce-eager") == SERVE or off == SERVE.replace(
            "eager: true", "eager: false"
        )
    else:
        assert off == FILES[name].replace("--enforce-eager", "--no-enforce-eager")
    added = edited(FILES[name], name, Flag("async-scheduling", False))
    assert "async-scheduling" in added
    assert launch_file(off, name).edited([Flag("enforce-eager", True)]).text == FILES[name]


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


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (f"""'{SPEC}'""", f"""'{SPEC}'""".replace("/d", "/it'\\''s")),
        (
            '"{\\"method\\": \\"eagle3\\", \\"model\\": \\"/d\\"}"',
            '"{\\"method\\": \\"eagle3\\", \\"model\\": \\"/it\'s\\"}"',
        ),
        (
            """{\\"method\\":\\"eagle3\\",\\"model\\":\\"/d\\"}""",
            """{\\"method\\":\\"eagle3\\",\\"model\\":\\"/'it'"'"'s'\\"}""",
        ),
        ("""'{"method": "eagle3", "model": "'/d'"}'""", """'{"method": "eagle3", "model": "'/'it'"'"'s''"}'"""),
    ],
)
def test_quotes_of_a_shell_stay(given: str, wanted: str) -> None:
    text = f"vllm serve /m --speculative-config {given} # end\n"
    after = edited(text, "run.sh", Key("speculative-config", "/model", "/it's"))
    assert after.startswith("vllm serve /m --speculative-config ") and after.endswith(" # end\n")
    assert launch_file(after).says()["speculative.model"] == "/it's"
    if given.startswith(('\'{"method": "eagle3", "model": "/d", "num', '"')):
        assert after == text.replace(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            'speculative-config: \'{"method": "eagle3", "model": "/d"}\'',
            '\'{"method": "eagle3", "model": "/o/draft"}\'',
        ),
        ('speculative-config: "{\\"method\\": \\"eagle3\\", \\"model\\": \\"\\/d\\"}"', '\\"\\/o/draft\\"}"'),
        (
            'speculative-config: |\n  {"method": "eagle3",\n   "model": "/d"}',
            '{"method": "eagle3",\n   "model": "/o/draft"}',
        ),
        (
            'speculative-config: >-\n  {"method": "eagle3",\n  "model": "/d"}',
            '{"method": "eagle3",\n  "model": "/o/draft"}',
        ),
        (
            "speculative-config:\n  method: eagle3 # m\n  model: /d # d\n  num_speculative_tokens: 5",
            "model: /o/draft # d\n",
        ),
        ("speculative-config.method: eagle3\nspeculative-config.model: /d", "speculative-config.model: /o/draft"),
        ("speculative_config: {method: eagle3, model: '/d'}", "{method: eagle3, model: '/o/draft'}"),
    ],
)
def test_a_speculative_config_in_a_serve_yaml(given: str, wanted: str) -> None:
    text = f"model: /m\n{given}\n# end\nseed: 1\n"
    after = edited(text, "serve.yaml", DRAFT)
    assert wanted in after and after.endswith("\n# end\nseed: 1\n")
    assert launch_file(after, "serve.yaml").says()["speculative.model"] == "/o/draft"


def test_dotted_keys_are_words() -> None:
    text = "vllm serve /m --speculative-config.method eagle3 --speculative_config.model=/d\n"
    assert edited(text, "run.sh", DRAFT) == text.replace("/d", "/o/draft")
    assert edited(text, "run.sh", TOKENS).rstrip("\n") == (
        text.rstrip("\n") + " --speculative_config.num_speculative_tokens=3"
    )
    assert edited(text, "run.sh", Key("speculative-config", "/method", None)) == text.replace(
        " --speculative-config.method eagle3", ""
    )


def test_a_key_that_is_no_word_of_the_config() -> None:
    text = f"vllm serve /m --hf-overrides '{{\"a\": {{\"b\": 1}}}}' --speculative-config '{SPEC}'\n"
    assert edited(text, "run.sh", Key("hf-overrides", "/a/c", 2)) == text.replace('"b": 1', '"b": 1,"c": 2')
    assert edited(SCRIPT, "run.sh", Key("hf-overrides", "/a/c", 2)) == SCRIPT.replace(
        f"'{SPEC}' \\\n", f"'{SPEC}' \\\n    --hf-overrides '{{\"a\": {{\"c\": 2}}}}' \\\n"
    )
    assert edited(SERVE, "serve.yaml", Key("hf-overrides", "/a/c", 2)) == SERVE.replace(
        f"{SPEC}\n", f'{SPEC}\nhf-overrides: {{"a": {{"c": 2}}}}\n'
    )


def test_words_of_an_array() -> None:
    array = f"ARGS=(\n  --max-model-len 8192  # tokens\n  --speculative-config '{SPEC}'\n)\n"
    text = array + 'vllm serve /m "${ARGS[@]}"\n'
    assert edited(text, "run.sh", Flag("max-model-len", 4096), DRAFT) == text.replace("8192", "4096").replace(
        '"/d"', '"/o/draft"'
    )
    assert "--seed 7" in edited(text, "run.sh", Flag("seed", 7))


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


def test_doubled_dollars() -> None:
    script = """services:
  llm:
    image: vllm/vllm-openai:v0.26.0
    command:
      - bash
      - -c
      - 'echo $$HOME; vllm serve /m --speculative-config "{\\"model\\": \\"/d\\"}" --seed 1'
"""
    assert edited(script, "c.yaml", DRAFT) == script.replace("/d", "/o/draft")
    assert edited(script, "c.yaml", Flag("seed", None)) == script.replace(" --seed 1", "")


def test_only_the_launch_that_is_meant_changes() -> None:
    text = POD + POD.replace("name: llm", "name: other").replace('"/d"', '"/e"')
    file = LaunchFile(Path("pod.yaml"), text, 1, find_engine("vllm==0.26.0"), stated)
    assert file.edited([Key("speculative-config", "/model", "/o/draft")]).text == text.replace('"/e"', '"/o/draft"')


def test_each_form_that_a_release_reads() -> None:
    for engine in ("vllm==0.12.0", "vllm==0.33.0"):
        for name, written in FILES.items():
            text = written.replace(f"config: {SPEC}", f"config: '{SPEC}'")  # the older reads no nested mapping
            assert edited(text, name, DRAFT, engine=engine) == text.replace('"/d"', '"/o/draft"')


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


@pytest.mark.parametrize("name", [*FILES])
@pytest.mark.parametrize(
    "path", ["/a b", "/it's", '/q"x', "/b`id`", "/back\\slash", "/é😀", "/x;y&z", "/{a,b}*", "/c: d #e"]
)
def test_a_path_of_any_kind_is_written_as_the_file_needs_it(name: str, path: str) -> None:
    for edit in (Key("speculative-config", "/model", path), Model(path), Flag("generation-config", path)):
        edited(FILES[name], name, edit)  # which reads it again
    if name != "serve.yaml":
        edited(FILES[name], name, PathEntry(path))


def test_a_dollar_that_compose_would_put_something_in_for_is_left() -> None:
    for edit in (Model("/d$HOME"), PathEntry("/d$HOME")):
        with pytest.raises(CannotEdit, match="by hand"):
            edited(COMPOSE_LIST, "list.yaml", edit)
    assert "'/d$HOME'" in edited(SCRIPT, "run.sh", Model("/d$HOME"))
    assert '"/d\\$HOME${PYTHONPATH' in edited(SCRIPT, "run.sh", PathEntry("/d$HOME"))
