"""``specfix check``: what it prints, what it exits with, and what it must not load."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specfix.checker.finding import SEVERITIES
from specfix.cli.options import FailOn, Format
from specfix.report import FORMATS

from .conftest import DRAFT, TARGET, Run

PAIR = (TARGET, DRAFT, "--engine", "vllm==0.26.0", "--hardware", "h200")
FAILS = (*PAIR, "--max-model-len", "8192", "--select", "POS001")
PASSES = (*PAIR, "--max-model-len", "1024", "--select", "POS001")
SKIPS = (TARGET, DRAFT, "--engine", "vllm==0.26.0", "--select", "AUX004")  # no tensors in the examples


def test_options_offer_what_the_reports_can_do() -> None:
    assert tuple(form.value for form in Format) == FORMATS
    assert tuple(choice.value for choice in FailOn) == (*SEVERITIES, "never")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (PASSES, 0),
        (FAILS, 1),
        ((*FAILS, "--fail-on", "never"), 0),
        ((*FAILS, "--fail-on", "note"), 1),
        ((*FAILS, "--ignore", "POS"), 0),
        ((*PASSES, "--strict"), 0),
        ((*SKIPS,), 0),
        ((*SKIPS, "--strict"), 1),
        ((*SKIPS, "--strict", "--fail-on", "never"), 1),
    ],
)
def test_exit_status(specfix: Run, arguments: tuple[str, ...], status: int) -> None:
    done = specfix("check", *arguments)
    assert (done.returncode, done.stderr) == (status, "")


def test_a_length_that_the_memory_decides_is_not_known(specfix: Run) -> None:
    done = specfix("check", *PAIR, "--max-model-len", "-1", "--format", "json")
    skipped = {one["code"]: one["reason"] for one in json.loads(done.stdout)["skipped"]}
    assert (done.returncode, done.stderr) == (0, "")
    assert "max-model-len" in skipped["POS001"] and "auto" in skipped["POS001"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "TARGET"),
        ((TARGET, DRAFT, "third"), "third"),
        ((TARGET, DRAFT, "--no-such-option"), "--no-such-option"),
        ((*PAIR, "--max-model-len", "-2"), "--max-model-len must be at least 1, not -2"),
        ((*PAIR, "--num-speculative-tokens", "0"), "--num-speculative-tokens must be at least 1"),
        (
            (*PAIR, "--flag", "enable-prefix-cachin=true"),
            "has no --enable-prefix-cachin; it has --enable-prefix-caching",
        ),
        ((*PAIR, "--flag", "max-model-len=9"), "has an option of its own: --max-model-len"),
        ((*PAIR, "--flag", "speculative_config={}"), "has an option of its own: --speculative-config"),
        ((*PAIR, "--flag", "seed"), "--flag takes NAME=VALUE, not 'seed'"),
        ((*PAIR, "--speculative-config", "{"), "--speculative-config, line 1 column 2: not valid JSON"),
        ((*PAIR, "--speculative-config", "[]"), "--speculative-config holds [] where a JSON object is expected"),
        ((*PAIR, "--speculative-config", '{"model": "elsewhere"}'), "model is given twice"),
        (
            (*PAIR, "--speculative-config", '{"method": "eagle", "method": "eagle3"}'),
            '--speculative-config has "method" twice, with two values',
        ),
        (
            (*PAIR, "--flag", 'hf-overrides={"a": {"b": 1, "b": true}}'),
            '--flag hf-overrides has "b" twice, with two values',
        ),
        ((*PAIR, "--speculative-config", '{"method": 1}'), "the speculative config's method is 1"),
        (
            (*PAIR, "--num-speculative-tokens", "3", "--speculative-config", '{"num_speculative_tokens": 4}'),
            "num_speculative_tokens is given twice: 3 and, in the speculative config, 4",
        ),
        ((*PAIR, "--tensor-parallel-size", "0"), "--tensor-parallel-size"),
        ((*PAIR, "--block-size", "many"), "--block-size"),
        ((*PAIR, "--format", "xml"), "'xml'"),
        ((*PAIR, "--fail-on", "fatal"), "'fatal'"),
        ((*PAIR, "--env", "HF_HOME"), "--env takes NAME=VALUE, not 'HF_HOME'"),
        ((*PAIR, "--env", "=1"), "--env takes NAME=VALUE"),
        ((*PAIR, "--env", "A B=c"), "--env: 'A B' is no name of a variable"),
        ((*PAIR, "--env", "1A=c"), "--env: '1A'"),
        ((*PAIR, "--dtype", "b f16"), "--dtype takes a name, not 'b f16'"),
        ((*PAIR, "--dtype", ""), "--dtype takes a name"),
        ((*PAIR, "--kv-cache-dtype", "fp8;x"), "--kv-cache-dtype takes a name"),
        ((*PAIR, "--attention-backend", "-x"), "--attention-backend takes a name"),
        ((*PAIR, "--max-model-len", str(2**40 + 1)), "--max-model-len must be at most 1099511627776"),
        ((*PAIR, "--num-speculative-tokens", "9" * 99), "--num-speculative-tokens must be at most"),
        ((*PAIR, "--select", ","), "no rule's code is in ','"),
        ((*PAIR, "--select", ""), "no rule's code is in ''"),
        ((*PAIR, "--select", "XYZ"), "'XYZ'"),
        ((*PAIR, "--ignore", "POS001,XYZ9"), "'XYZ9'"),
        ((*PAIR, "--method", "eagle4"), "vllm 0.26.0 knows no method 'eagle4'; it knows "),
        ((TARGET, DRAFT, "--engine", "vllm==9.9.9"), "9.9.9"),
        ((TARGET, DRAFT, "--engine", "/nowhere"), "/nowhere"),
        ((TARGET, DRAFT, "--engine", ""), "the engine is empty"),
        ((TARGET, DRAFT, "--engine", "vllm/vllm-openai:latest"), "its tag does not say which release of vLLM it holds"),
        ((TARGET, DRAFT, "--engine-python", "/nowhere/python"), "'/nowhere/python' is no program that can be run"),
        ((TARGET, DRAFT, "--engine-python", TARGET), "is a folder: give the interpreter in it"),
        ((*PAIR, "--engine-python", sys.executable), "name two engines: give one"),
        (("", DRAFT, *PAIR[2:]), "the target is empty"),
        ((TARGET, "", *PAIR[2:]), "the draft is empty"),
        ((DRAFT, TARGET, *PAIR[2:]), f"{DRAFT} is a draft (eagle3), and {TARGET} is given as its draft"),
        ((TARGET, TARGET, *PAIR[2:]), f"TARGET and DRAFT are both {TARGET}"),
        ((DRAFT, DRAFT, *PAIR[2:]), f"{DRAFT} is a draft (eagle3): give its target first"),
        ((TARGET, DRAFT, "--hardware", "abacus"), "abacus"),
        (("/nowhere/model", DRAFT), "/nowhere/model"),
        (("bad\x1b[31m\nname", DRAFT), r"[31m\nname"),
    ],
)
def test_what_cannot_be_checked_is_one_line_on_stderr(specfix: Run, arguments: tuple[str, ...], named: str) -> None:
    done = specfix("check", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("specfix: error: ") and done.stderr.count("\n") == 1
    assert named in done.stderr and "\x1b" not in done.stderr


@pytest.mark.parametrize("code", ["INT", "int001"])
def test_the_rule_engines_own_code_is_one_too(specfix: Run, code: str) -> None:
    assert specfix("check", *PAIR, "--max-model-len", "8192", "--select", code).returncode == 0
    assert specfix("check", *FAILS, "--ignore", code).returncode == 1


@pytest.mark.parametrize("arguments", [("check", *FAILS), ("check", "/nowhere", DRAFT), ("--help",), ("rules",)])
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "2>&-"])
def test_a_closed_output_is_no_traceback(arguments: tuple[str, ...], closed: str) -> None:
    command = shlex.join([sys.executable, "-m", "specfix", *arguments])
    done = subprocess.run(["sh", "-c", f"{command} {closed}"], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    if closed == ">&-":
        assert done.stderr == "specfix: error: standard output is closed\n"
    if closed.startswith(">&-") or "/nowhere" in arguments:
        assert (done.returncode, done.stdout) == (2, "")


def test_the_finding_is_shown_in_its_place(specfix: Run) -> None:
    text = specfix("check", *FAILS).stdout
    assert "error[POS001] draft-position-table" in text
    assert '"max_position_embeddings": 2048,\n' in text
    assert "fail: 1 error" in text.splitlines()[-1]
    assert "\x1b" not in text


def test_flags_and_keys_of_the_engine_are_a_part_of_what_is_served(specfix: Run) -> None:
    keys = {"model": DRAFT, "method": "eagle3", "num_speculative_tokens": 5, "quantization": None}
    flags = ("--flag", "enable-prefix-caching=false", "--flag", "seed=7", "--flag", "tokenizer-mode=slow")
    done = specfix("check", TARGET, *PAIR[2:], *flags, "--speculative-config", json.dumps(keys), "--format", "json")
    assert done.stderr == ""
    given = json.loads(done.stdout)["deployment"]
    assert given["draft"] == DRAFT
    assert given["serving"]["flags"] == {"enable_prefix_caching": False, "seed": 7, "tokenizer_mode": "slow"}
    assert given["serving"]["speculative"] == {"quantization": None}
    assert (given["serving"]["method"], given["serving"]["num_speculative_tokens"]) == ("eagle3", 5)


def test_what_was_not_given_stands_in_the_first_line(specfix: Run) -> None:
    first = specfix("check", TARGET, DRAFT).stdout.splitlines()[0]
    assert "Assumed: engine vllm " in first and "method eagle3" in first and "hardware" in first
    assert "Assumed" not in specfix("check", *PASSES, "--method", "eagle3").stdout


def test_an_image_is_judged_by_its_tag_and_that_is_said(specfix: Run) -> None:
    image = ("--engine", "vllm/vllm-openai:v0.26.0-cu130", *PAIR[4:], "--select", "POS001")
    first = specfix("check", TARGET, DRAFT, *image).stdout.splitlines()[0]
    assert " on vllm 0.26.0, " in first and "Assumed: engine vllm 0.26.0: as the image's tag says" in first
    engine = json.loads(specfix("check", TARGET, DRAFT, *image, "--format", "json").stdout)["deployment"]["engine"]
    assert engine == {"name": "vllm", "version": "0.26.0", "source": "shipped, by the image's tag"}


@pytest.mark.parametrize("command", [("check",), ("fix", "--diff")])
def test_an_interpreter_is_asked_for_its_engine(process: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    asked = (*command, TARGET, DRAFT, "--engine-python", sys.executable, *PAIR[4:])
    done = process(*asked, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{package} is no readable vLLM package: config/model.py, " in done.stderr
    assert done.stderr.startswith("specfix: error: ") and done.stderr.count("\n") == 1


def test_json_is_nothing_but_json(specfix: Run) -> None:
    done = specfix("check", *FAILS, "--format", "json", "--env", "A=1", "--env", "A=b=c", "--greedy")
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"]) == (1, "fail")
    assert [finding["code"] for finding in found["findings"]] == ["POS001"]
    assert found["deployment"]["serving"]["env"] == {"A": "b=c"}
    assert found["deployment"]["serving"]["greedy"] is True


def test_github_annotates_the_line(specfix: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(Path(DRAFT).parent))
    done = specfix("check", *FAILS, "--format", "github")
    assert "\n::error file=eagle3-llama-3.1-8b/config.json,line=" in done.stdout


@pytest.mark.parametrize("form", FORMATS)
def test_two_runs_say_the_same(process: Run, form: str) -> None:
    first, second = (process("check", *PAIR, "--format", form, PYTHONHASHSEED=seed).stdout for seed in ("1", "2"))
    assert first == second


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    command = [sys.executable, "-m", "specfix", "check", *FAILS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("check", "--help"),
        ("gate", "-h"),
        ("rules",),
        ("explain", "POS001"),
        ("engine", "0.26.0"),
        ("hardware",),
        *(("check", *FAILS, "--format", form) for form in FORMATS),
        ("fix", *FAILS, "--diff"),
    ],
    ids=" ".join,
)
def test_whatever_it_was_that_nobody_reads(arguments: tuple[str, ...]) -> None:
    """It is no finding, and there is nothing to be said of it."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "specfix", *arguments]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_output_that_cannot_be_written_is_said() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with full.open("w") as out:
        command = [sys.executable, "-m", "specfix", "check", *PASSES]
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("specfix: error: ") and done.stderr.count("\n") == 1


def test_an_encoding_without_the_characters_is_no_traceback(process: Run, tmp_path: Path) -> None:
    target = tmp_path / "模型"
    target.mkdir()
    (target / "config.json").write_bytes(Path(TARGET, "config.json").read_bytes())
    done = process("check", str(target), *PASSES[1:], PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u6a21\u578b" in done.stdout


def terminal(**environment: str) -> bytes:
    """What ``specfix check`` writes to a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "specfix", "check", *FAILS]
    clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(command, stdout=theirs, env=clean | {"TERM": "xterm"} | environment)
    os.close(theirs)
    out = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            part = b""
        if not part:
            break
        out += part
    os.close(ours)
    assert process.wait(60) == 1
    return out


def test_colour_on_a_terminal_unless_it_is_not_wanted() -> None:
    assert b"\x1b[1;31merror[POS001]\x1b[0m" in terminal()
    assert b"\x1b" not in terminal(NO_COLOR="1")


LOADED = """
import sys
from specfix.cli import main
status = main(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(status)
"""
EMPTY = """
import sys, typer
app = typer.Typer(add_completion=False)
app.command()(lambda: None)
app.callback()(lambda: None)
app(["<lambda>"], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""
HEAVY = {
    "torch",
    "transformers",
    "vllm",
    "huggingface_hub",
    "pydantic",
    "numpy",
    "rich",
    "yaml",
    "requests",
    "asyncio",
}


def modules(code: str, *arguments: str) -> set[str]:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return set(done.stderr.split())


@pytest.mark.parametrize("form", FORMATS)
def test_a_local_check_loads_nothing_heavy(form: str) -> None:
    ours = modules(LOADED, "check", *FAILS, "--format", form) - modules(EMPTY)  # Typer's own are not our choice
    assert "specfix.checking" in ours
    assert not ours & HEAVY


def test_importing_the_package_loads_nothing() -> None:
    loaded = modules("import sys, specfix; print(*sys.modules, file=sys.stderr)")
    assert {name for name in loaded if name.startswith("specfix")} == {"specfix"}
    assert not loaded & HEAVY


def test_a_local_check_is_quick() -> None:
    def seconds(code: str, *arguments: str) -> float:
        def once() -> float:
            start = time.perf_counter()
            modules(code, *arguments)
            return time.perf_counter() - start

        return min(once() for _ in range(3))

    assert seconds(LOADED, "check", *FAILS) < seconds(EMPTY) + 3
