"""A key, a flag or the model of a launch file changed: every other byte stays, in each form that such a file has."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.engines.find import find_engine
from specfix.launching import stated
from specfix.repair.edit.launch_file import Flag, Key, LaunchFile, Model, Variable

from .launch_files import DRAFT, FILES, POD, SERVE, SPEC, TOKENS, changed, edited, launch_file


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


def test_only_the_launch_that_is_meant_changes() -> None:
    text = POD + POD.replace("name: llm", "name: other").replace('"/d"', '"/e"')
    file = LaunchFile(Path("pod.yaml"), text, 1, find_engine("vllm==0.26.0"), stated)
    assert file.edited([Key("speculative-config", "/model", "/o/draft")]).text == text.replace('"/e"', '"/o/draft"')


def test_each_form_that_a_release_reads() -> None:
    for engine in ("vllm==0.12.0", "vllm==0.33.0"):
        for name, written in FILES.items():
            text = written.replace(f"config: {SPEC}", f"config: '{SPEC}'")  # the older reads no nested mapping
            assert edited(text, name, DRAFT, engine=engine) == text.replace('"/d"', '"/o/draft"')
