"""The report for people, to the letter."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from specfix.checker.report import Skipped
from specfix.deployment import Draft, Serving
from specfix.deployment.config import Config
from specfix.report.terminal import Terminal, cells
from specfix.report.text import render

from .sample import ABSENT, POSITIONS, TRITON, at, config, report

SEVERAL = """\
models/target with models/draft (eagle3) on vllm 0.26.0, h200

error[POS001] draft-position-table: serves, but accepts nothing or is wrong
  The draft has 2048 positions, and sequences of up to 8192 tokens are served.
   --> models/draft/config.json:4
    |
  2 |   "architectures": ["LlamaForCausalLM"],
  3 |   "hidden_size": 4096,
  4 |   "max_position_embeddings": 2048,
    |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  5 |   "eagle_config": {"ids": [2, 16, 60]},
  6 |   "vocab_size": 128256
    |
   ::: models/target/config.json:3
  3 |   "max_position_embeddings": 131072
   ::: --max-model-len 8192
    = repair, safe: set max_position_embeddings to 8192 in the draft
    = evidence: vllm-project/vllm#48894, vllm-project/vllm#49343
    = more: specfix explain POS001

warning[HWR002] triton-without-a-driver: seen while serving (likely)
  CUDA_VISIBLE_DEVICES is the empty string, so Triton counts as there.
   --> environment: CUDA_VISIBLE_DEVICES=
   ::: hardware h200: compute_capability is (9, 0)
    = repair, unsafe: unset CUDA_VISIBLE_DEVICES
    = more: specfix explain HWR002

note[AUX001] aux-layers-guessed: worth knowing
  The draft names no layers: the engine guesses 2, 16 and 29.
   --> models/draft/config.json (no /eagle_aux_hidden_state_layer_ids)
    = more: specfix explain AUX001

skipped KVC001 WGT001, not known: a safetensors header of models/draft
skipped HWR001, not known: the hardware that will serve

fail: 1 error, 1 warning, 1 note; 3 rules skipped
"""

SKIPPED = (
    Skipped("KVC001", "a safetensors header of models/draft"),
    Skipped("HWR001", "the hardware that will serve"),
    Skipped("WGT001", "a safetensors header of models/draft"),
)


def test_several_findings_to_the_letter() -> None:
    assert render(report(POSITIONS, TRITON, ABSENT, skipped=SKIPPED), Terminal()) == SEVERAL


def first_line(**changes: Any) -> str:
    return render(report(**changes), Terminal()).splitlines()[0]


def test_nothing_found_is_two_lines() -> None:
    assert render(report(), Terminal()).splitlines() == [SEVERAL.splitlines()[0], "", "pass: nothing found"]


def test_nothing_found_yet_rules_skipped() -> None:
    assert render(report(skipped=SKIPPED[:1]), Terminal()).endswith("\nunknown: nothing found; 1 rule skipped\n")


def test_assumptions_stand_in_the_first_line() -> None:
    assumptions = ("engine vllm 0.26.0: the newest known", "hardware h200: found here")
    assert first_line(assumptions=assumptions).endswith(f"h200. Assumed: {'; '.join(assumptions)}")


def test_first_line_without_draft_and_hardware() -> None:
    line = first_line(draft=None, hardware=None, serving=Serving(method="ngram"))
    assert line == "models/target (ngram) on vllm 0.26.0, unknown hardware"


def test_a_draft_inside_the_target_is_not_named_twice() -> None:
    text = '{"num_nextn_predict_layers": 1}'
    own = Draft("models/target", config("models/target/config.json", text))
    assert first_line(draft=own, serving=Serving(method="mtp")).startswith("models/target (mtp) on")


def marked(text: str, pointer: str, line: int, width: int = 80) -> tuple[str, str]:
    """The offending line as shown and what is marked in it."""
    draft = Draft("models/draft", Config({}, "models/draft/config.json", text))
    lines = render(report(at(pointer, line), draft=draft), Terminal(width)).splitlines()
    under = next(number for number, shown in enumerate(lines) if re.fullmatch(r" *\| +\^+", shown))
    assert cells(lines[under - 1]) <= width
    start, end = lines[under].index("^"), len(lines[under])
    return lines[under - 1], lines[under - 1][start:end]


@pytest.mark.parametrize(
    ("line", "pointer", "fault"),
    [
        ('  "a": 1, "b": "x, y",', "/b", '"b": "x, y"'),
        ('  "b": {"b": [1, 2]}, "c": 3', "/b/b", '"b": {"b": [1, 2]}'),
        ('  "ids": [2, 16, 60],', "/ids/2", '"ids": [2, 16, 60]'),
        ('  "rope": {', "/rope", '"rope": {'),
        ("    60,", "/ids/2", "60"),
        ('  "a": "b", "b" : null', "/b", '"b" : null'),
        ('\t"b": 1', "/b", '"b": 1'),
        ('  "x/y": 1', "/x~1y", '"x/y": 1'),
    ],
)
def test_the_mark_is_under_key_and_value(line: str, pointer: str, fault: str) -> None:
    assert marked("{\n" + line + "\n}", pointer, 2)[1] == fault


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_minified_file_is_cut_around_the_fault(width: int) -> None:
    text = json.dumps({"before": "x" * 5000, "vocab_size": 32000, "after": ["y"] * 50000})
    shown, fault = marked(text, "/vocab_size", 1, width)
    assert fault == '"vocab_size": 32000'
    assert shown.count("…") == 2


def test_a_value_wider_than_the_line_is_cut() -> None:
    _, fault = marked('{"ids": ' + str(list(range(1000))) + "}", "/ids", 1)
    assert fault.startswith('"ids": [0, 1') and fault.endswith("…")


def test_control_sequences_are_shown_not_obeyed() -> None:
    text = '{"name": "\x1b[2J\u202eabc\x07", "vocab_size": 1}'
    shown, fault = marked(text, "/vocab_size", 1)
    assert fault == '"vocab_size": 1'
    assert r"\x1b[2J\u202eabc\x07" in shown
    whole = render(report(at("/x", 1, "bad \x1b[31m name\nerror[FAKE]")), Terminal(color=True))
    assert r"bad \x1b[31m name\nerror[FAKE]" in whole


def test_wide_characters_keep_the_mark_in_place() -> None:
    draft = Draft("models/draft", Config({}, "models/draft/config.json", '{"名前": "模型", "vocab_size": 1}'))
    lines = render(report(at("/vocab_size", 1), draft=draft), Terminal()).splitlines()
    under = next(line for line in lines if "^" in line)
    assert under.index("^") == cells(lines[lines.index(under) - 1].split('"vocab_size"')[0])


@pytest.mark.parametrize("line", [0, 99])
def test_a_line_that_the_text_lacks_is_named_only(line: int) -> None:
    found = render(report(at("/vocab_size", line)), Terminal())
    assert f"--> models/draft/config.json:{line}\n" in found and "|" not in found


def test_colour_changes_nothing_but_colour() -> None:
    whole = report(POSITIONS, TRITON, ABSENT, skipped=SKIPPED)
    painted = render(whole, Terminal(color=True))
    assert "\x1b[1;31merror[POS001]\x1b[0m" in painted
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == SEVERAL


def test_a_long_message_is_wrapped_and_a_path_in_it_kept() -> None:
    path = "/models/" + "x" * 120
    lines = render(report(at("/vocab_size", 6, f"{'word ' * 40}{path} {'word ' * 5}")), Terminal(60)).splitlines()
    assert f"  {path}" in lines
