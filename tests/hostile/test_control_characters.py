"""What a terminal, a log or a page would obey is shown instead, wherever strangers wrote it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from specfix.report import FORMATS

from .conftest import Run
from .makers import DRAFT, HOW, TARGET, WHERE, model, script, serve_yaml

OBEYED = (
    "\x1b[2J",
    "\x1b]8;;https://evil.example\x07x",
    "\x1b]52;c;eA==\x07",
    "\x9b31m",
    "\N{RIGHT-TO-LEFT OVERRIDE}",
    "\N{LINE SEPARATOR}",
    "\r",
    "\x7f",
)
MARKED = "[red]x[/] [link=https://evil.example]y[/link] | <b>z</b> [a](https://evil.example) @all www.evil.example"
COMMANDS = "\n::error file=x::y\n##[add-mask]z\n::stop-commands::t\n%0A::error::q"
STRANGE = "".join(OBEYED) + MARKED + COMMANDS
CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
FILES = {"serve.yaml": serve_yaml(), "run.sh": script("--no-such-flag X --dtype bfloat16")}


@pytest.fixture
def strange_pair(tmp_path: Path) -> tuple[str, str]:
    """A pair whose paths, keys and values hold it all."""
    values = json.loads((DRAFT / "config.json").read_text())
    values |= {"draft_vocab_size": 7, "torch_dtype": "float16", STRANGE: STRANGE, "hidden_act": STRANGE}
    raw = json.dumps(values, ensure_ascii=False, indent=1).replace(
        '"architectures"', f'"{"".join(OBEYED[-4:-2])}": 1,\n "architectures"'
    )
    name = STRANGE.replace("/", "_")[:200]
    return model(tmp_path / f"t{name}", {}, TARGET), model(tmp_path / f"d{name}", {"config.json": raw.encode()})


def harmless(form: str, out: str) -> None:
    assert not CONTROL.search(out), CONTROL.search(out)
    lines = out.split("\n")
    if form == "github":
        commands = [line for line in lines if line.lstrip().startswith("::")]
        assert all(re.match(r"::(error|warning|notice) [^:]*title=(specfix|[A-Z]{3}\d+)", line) for line in commands)
        assert not [line for line in lines if "##[" in line and line not in commands]
    elif form == "markdown":
        assert not re.search(r"(?<!\\)<(?!!-- -->)|(?<!\\)\[|(?<!\w)@(?=\w)|https?:(?=//)|www(?=\.)", out)
        rows = [line for line in lines if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {4, 5}
    elif form == "junit":
        ElementTree.fromstring(out)
    elif form in ("json", "sarif"):
        json.loads(out)
        assert out.isascii()


@pytest.mark.parametrize("form", FORMATS)
def test_what_configs_and_paths_hold(specfix: Run, strange_pair: tuple[str, str], form: str) -> None:
    said = specfix("check", *strange_pair, *HOW, "--format", form)
    assert said.status == 1 and said.err == ""
    harmless(form, said.out)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", FILES)
def test_what_launches_hold(specfix: Run, tmp_path: Path, form: str, name: str) -> None:
    strange = STRANGE.replace("/", "_")[:200]
    for folder in ("one", "::error::two"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / f"{strange}{name}"
        quoted = FILES[name].replace("X", "'" + STRANGE.replace("'", "") + "'")
        file.write_text(quoted + f"# {''.join(OBEYED[:-2])}\n" if name == "run.sh" else quoted, "utf-8")
    said = specfix("gate", str(tmp_path), *WHERE, "--format", form)
    assert said.status in (1, 2) and said.err == ""
    harmless(form, said.out)
    twice = specfix("gate", str(tmp_path), *WHERE, "--engine", "vllm==0.21.0", "--format", form)
    harmless("upgrade" if form == "markdown" else form, twice.out)


def test_a_name_at_the_start_of_a_line_is_no_command(
    specfix: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "::error::x ##[debug]").mkdir()
    (tmp_path / "::error::x ##[debug]" / "a.sh").write_text(script())
    said = specfix("gate", "::error::x ##[debug]", *WHERE, "--format", "github")
    assert said.status == 1 and "x # #[debug]" in said.out
    harmless("github", said.out)


@pytest.mark.parametrize("strange", [*OBEYED, MARKED, COMMANDS])
def test_errors(specfix: Run, strange: str) -> None:
    given = [
        ("check", f"/no/{strange}", str(DRAFT)),
        ("check", str(TARGET), str(DRAFT), "--engine", strange),
        ("check", str(TARGET), str(DRAFT), "--hardware", strange),
        ("check", str(TARGET), str(DRAFT), *WHERE, "--method", strange),
        ("check", str(TARGET), str(DRAFT), *WHERE, "--flag", f"{strange}=1"),
        ("check", str(TARGET), str(DRAFT), *WHERE, "--env", f"{strange}=1"),
        ("check", str(TARGET), str(DRAFT), *WHERE, "--select", strange),
        ("check", "--launch", f"/no/{strange}"),
        ("check", f"--{strange}"),
        ("explain", strange),
        ("engine", strange),
        ("gate", f"/no/{strange}"),
    ]
    for arguments in given:
        said = specfix(*arguments)
        assert said.status == 2, arguments
        assert not CONTROL.search(said.out + said.err), arguments
        if said.err:
            assert said.err.count("\n") == 1


def test_a_diff(specfix: Run, strange_pair: tuple[str, str], tmp_path: Path) -> None:
    said = specfix("fix", *strange_pair, *HOW, "--diff")
    assert said.status == 1 and "max_position_embeddings" in said.out
    assert not CONTROL.search(said.out)
    file = tmp_path / "run.sh"
    file.write_bytes(script(f"# {''.join(OBEYED)} end").replace("\n", "\r\n").encode())
    said = specfix("fix", "--launch", str(file), *WHERE, "--diff")
    assert said.status == 1 and not CONTROL.search(said.out.replace("\r\n", "\n"))
    assert "No newline" not in said.out
    done = specfix("fix", *strange_pair, *HOW, "--out", str(tmp_path / "out"))
    assert not CONTROL.search(done.out)


def test_lists_hold_none(specfix: Run) -> None:
    for arguments in (("rules",), ("engine",), ("engine", "0.26.0"), ("explain", "POS001")):
        assert not CONTROL.search(specfix(*arguments).out)


def test_a_path_that_is_no_text(specfix: Run, tmp_path: Path) -> None:
    draft = model(tmp_path / "d\udcff", {})
    for form in FORMATS:
        said = specfix("check", str(TARGET), draft, *HOW, "--format", form)
        assert said.status == 1 and said.err == ""
        harmless(form, said.out)
