"""The command line with any options at all: it answers, or refuses in one line; never with a traceback."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from specfix.cli import COMMANDS, application, main
from specfix.deployment import hub
from specfix.errors import CannotCheck
from tests.fuzz.targets import DRAFT, TARGET

from .drawing import Choose, examples, made, one

ASSIGNMENTS = ("A=1", "=", "A=", "VLLM_USE_V1=1", "VLLM_PLUGINS=x", "HF_TOKEN=s3cret", "seed=1.5", "dtype=x")
FLAGS = (
    "enable-prefix-caching=false",
    "max-num-seqs=[]",
    "seed={",
    "quantization=fp8",
    "hf-overrides={}",
    "seed=7",
    "x=1",
)
ENGINES = ("vllm==0.26.0", "0.33.0", "0.10.0", "vllm==0", "nightly", "vllm/vllm-openai:v0.26.0", "x:y")
CONFIGS = (
    "{}",
    "[]",
    '{"method": "eagle3"}',
    '{"a": [1, null]}',
    '{"num_speculative_tokens": "3"}',
    "{",
    '"',
    "1" * 5000,
)
FORMS = ("text", "json", "sarif", "github", "junit", "markdown")
CODES = ("POS001", "HWR", "INT001", "pos", ",", "POS001,AUX", "X")
FILES = ("new", "config.json", "launch.yaml", "launch.sh", "specfix.toml", ".", "absent.json", "folder")
WORDS = (
    *("", " ", "0", "1", "-1", "3", "8192", "99999999999999999999", "1e5", "nan", "true", "none", "auto", "null"),
    *("eagle3", "mtp", "ngram", "draft_model", "bfloat16", "fp8", "FLASH_ATTN", "cpu", "h200", "unknown", "engine"),
    *("error", "warning", "note", "never", *ASSIGNMENTS, *FLAGS, *ENGINES, *CONFIGS, *FORMS, *CODES, *FILES),
    *("é", "\U0001f600", "\x1b[31m", "a\nb", "\udc80", "%s", "$X", "*", "[", "x" * 300, "--", "-", "--help", "-h"),
    *("--version", str(TARGET), str(DRAFT)),
)
FITTING = {
    "--flag": FLAGS,
    "--env": ASSIGNMENTS,
    "--engine": ENGINES,
    "--speculative-config": CONFIGS,
    "--format": FORMS,
    **dict.fromkeys(("--select", "--ignore"), CODES),
    **dict.fromkeys(("--launch", "--out", "--baseline", "--write-baseline", "--save"), FILES),
}
OFTEN = ("check",) * 8 + ("fix",) * 4 + ("gate",) * 2
UNSAFE = {"--engine-python"}  # runs what it is given
LAUNCH = f"""\
model: {TARGET}
max-model-len: 8192
speculative-config: {{"method": "eagle3", "model": "{DRAFT}", "num_speculative_tokens": 5}}
"""
SERVE = f"""vllm serve {TARGET} --speculative-config '{{"method": "eagle3", "model": "{DRAFT}"}}'"""


@cache
def options() -> dict[str, tuple[str, ...]]:
    """Each command's options, as they are spelt."""
    group = typer.main.get_command(application())
    return {
        name: tuple(
            spelt for each in command.params for spelt in (*each.opts, *each.secondary_opts) if spelt[:1] == "-"
        )
        for name, command in group.commands.items()  # type: ignore[attr-defined]
    }


def any_arguments(choose: Choose) -> list[str]:
    command = one(choose, (*OFTEN, *COMMANDS))
    names = [name for name in options()[command] if name not in UNSAFE]
    arguments = [command]
    if choose(3) and command in ("check", "fix"):
        arguments += [str(TARGET), str(DRAFT)]
    for _ in range(choose(5)):
        if names and choose(4):
            option = one(choose, names)
            value = one(choose, FITTING.get(option, WORDS) if choose(4) else WORDS)
            arguments += [f"{option}={value}"] if choose(2) else [option, value]
        else:
            arguments.append(one(choose, WORDS))
    if not choose(6):
        arguments += ["--", *SERVE.replace("'", "").split(" ")[: 1 + choose(7)], one(choose, WORDS)]
    return arguments


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working directory, and no Hub."""

    def read_repository(name: str, revision: str | None) -> None:
        raise CannotCheck(f"{name} is on the Hub, which no test asks")

    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("here")
        patch.chdir(folder)
        patch.setattr(hub, "read_repository", read_repository)
        yield folder


def fill(folder: Path) -> None:
    """A file of each kind, whatever the run before has written."""
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    (folder / "folder").mkdir()
    (folder / "config.json").write_bytes((DRAFT / "config.json").read_bytes())
    (folder / "launch.sh").write_text(SERVE)
    for name in ("launch.yaml", "folder/launch.yaml"):
        (folder / name).write_text(LAUNCH)


def run(arguments: list[str]) -> tuple[int, str, str]:
    """Exit status, and what was written to both streams, which are files as in a shell."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = main(arguments)
        texts = []
        for stream in (out, errors):
            stream.flush()
            size = os.fstat(stream.fileno()).st_size
            texts.append(os.pread(stream.fileno(), size, 0).decode())
    return status, texts[0], texts[1]


@examples(20)
@given(made(any_arguments))
def test_any_arguments(here: Path, arguments: list[str]) -> None:
    fill(here)
    check_run(arguments)


@examples(5)
@given(st.sampled_from(["", *COMMANDS]), st.lists(st.text(max_size=8), max_size=6))
def test_any_words(here: Path, command: str, words: list[str]) -> None:
    fill(here)
    check_run([command, *words] if command else words)


def check_run(arguments: list[str]) -> None:
    status, out, errors = run(arguments)
    assert status in (0, 1, 2)
    assert "Traceback" not in errors and "bug of specfix" not in errors, errors
    if status == 2 and not out:
        assert re.fullmatch(r"specfix: error: [^\n]+\n", errors), errors
    if out.startswith("{"):
        json.loads(out)
