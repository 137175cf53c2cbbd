"""The gate: settings of a project, findings that are let pass, a baseline, two releases."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .conftest import DRAFT, TARGET, Done, Run

PAIR = (TARGET, DRAFT, "--hardware", "h200", "--max-model-len", "8192")
POS = (*PAIR, "--engine", "vllm==0.26.0", "--select", "POS001")
IGNORE = '[[ignore]]\ncode = "POS001"\nreason = "prompts stay short here"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, with the working directory somewhere in it."""
    (tmp_path / "deploy").mkdir()
    monkeypatch.chdir(tmp_path / "deploy")
    return tmp_path


def test_settings_of_a_project_hold_where_nothing_is_said(specfix: Run, project: Path) -> None:
    text = 'engine = "vllm==0.26.0"\nselect = ["POS001", "AUX001"]\nfail-on = "never"\nhardware = "h200"\n'
    (project / "specfix.toml").write_text(text)
    done = specfix("check", TARGET, DRAFT, "--max-model-len", "8192")
    assert done.returncode == 0 and "on vllm 0.26.0, h200" in done.stdout and "error[POS001]" in done.stdout
    done = specfix("check", TARGET, DRAFT, "--max-model-len", "8192", "--fail-on", "error", "--engine", "vllm==0.24.0")
    assert done.returncode == 1 and "vllm 0.24.0" in done.stdout


def test_a_table_of_pyproject_is_as_good(specfix: Run, project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.other]\nx = 1\n[tool.specfix]\nfail-on = "never"\n')
    assert specfix("check", *POS).returncode == 0
    (project / "deploy" / "pyproject.toml").write_text("[project]\nname = 'x'\n")  # says nothing of specfix
    assert specfix("check", *POS).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        '[tool]\nspecfix = {fail-on = "never"}\n',
        'tool.specfix.fail-on = "never"\n',
        '[ tool . "specfix" ]\nfail-on = "never"\n',
        '[tool.specfix]\r\nfail-on = "never"\r\n',
        '\ufeff[tool.specfix]\nfail-on = "never"\n',
    ],
)
def test_a_table_may_be_written_in_any_way(specfix: Run, project: Path, text: str) -> None:
    (project / "pyproject.toml").write_bytes(text.encode())
    assert specfix("check", *POS).returncode == 0


def test_a_file_of_its_own_may_begin_with_a_mark(specfix: Run, project: Path) -> None:
    (project / "specfix.toml").write_bytes('\ufefffail-on = "never"\r\n'.encode())
    assert specfix("check", *POS).returncode == 0


@pytest.mark.parametrize(
    "text", ['[project]\ndependencies = ["specfix"]\n', 'tool = "specfix"\n', "[tool.specfixes]\n"]
)
def test_a_pyproject_without_the_table_says_nothing(specfix: Run, project: Path, text: str) -> None:
    (project / "specfix.toml").write_text('fail-on = "never"\n')
    (project / "deploy" / "pyproject.toml").write_text(text)
    assert specfix("check", *POS).returncode == 0


def test_strict_may_be_a_setting(specfix: Run, project: Path) -> None:
    pair = (TARGET, DRAFT, "--engine", "vllm==0.26.0", "--select", "AUX004")
    (project / "specfix.toml").write_text("strict = true\n")
    assert specfix("check", *pair).returncode == 1
    assert specfix("check", *pair, "--no-strict").returncode == 0


def launch(length: int, more: str = "") -> str:
    speculative = json.dumps({"method": "eagle3", "model": DRAFT, "num_speculative_tokens": 3})
    return f"model: {TARGET}\nmax-model-len: {length}\nspeculative-config: {speculative}\n{more}"


def test_what_is_ignored_for_a_reason_is_let_pass_and_said(specfix: Run, project: Path) -> None:
    (project / "specfix.toml").write_text(IGNORE)
    done = specfix("check", *POS)
    assert done.returncode == 0
    assert "let pass POS001 draft-position-table: prompts stay short here" in done.stdout
    assert done.stdout.splitlines()[-1] == "pass: nothing found; 1 finding let pass"
    (told,) = json.loads(specfix("check", *POS, "--format", "json").stdout)["let_pass"]
    assert (told["code"], told["reason"]) == ("POS001", "prompts stay short here")


@pytest.mark.parametrize(("day", "status"), [("2999-12-31", 0), ("2001-01-01", 1)])
def test_an_ignore_may_end(specfix: Run, project: Path, day: str, status: int) -> None:
    (project / "specfix.toml").write_text(f"\n{IGNORE}until = {day}\n")
    done = specfix("check", *POS)
    assert done.returncode == status
    told = f"note: the ignore of POS001 ended on {day}: what it named is reported again (1 finding)"
    assert (told in " ".join(done.stdout.split())) == bool(status)
    assert ("specfix.toml:2)" in done.stdout) == bool(status)
    assert done.stdout.splitlines()[-1].startswith("fail:" if status else "pass:")


@pytest.mark.parametrize("form", ["json", "sarif", "github", "markdown"])
def test_the_end_of_an_ignore_is_said_in_each_format(specfix: Run, project: Path, form: str) -> None:
    (project / "specfix.toml").write_text(f"{IGNORE}until = 2001-01-01\n")
    assert "ended on 2001-01-01" in specfix("check", *POS, "--format", form).stdout.replace("\\", "")


def test_an_ignore_that_names_nothing_is_said_of_a_whole_folder_alone(specfix: Run, project: Path) -> None:
    told = "note: the ignore of POS001 named none of the findings"
    (project / "specfix.toml").write_text(IGNORE)
    (project / "deploy" / "a.yaml").write_text(launch(1024))
    where = ("--engine", "vllm==0.26.0", "--hardware", "h200")
    done = specfix("gate", ".", *where)
    assert told in done.stdout and done.returncode == 0
    assert told not in specfix("gate", "a.yaml", *where).stdout
    assert told not in specfix("gate", ".", *where, "--select", "POS001").stdout
    assert told not in specfix("gate", ".", *where, "--format", "github").stdout
    (project / "deploy" / "a.yaml").write_text(launch(8192))
    assert told not in specfix("gate", ".", *where).stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[ignore]]\ncode = 'POS001'\n", "ignoring POS001 needs a reason"),
        ("[[ignore]]\ncode = 'POS001'\nreason = ' '\n", "ignoring POS001 needs a reason"),
        ("[[ignore]]\nreason = 'x'\n", "an ignore has the code null"),
        (f"{IGNORE}until = 'soon'\n", "which is no date"),
        (f"{IGNORE}untill = 2026-01-01\n", "specfix.toml:1: an ignore has no key 'untill'; there is until"),
        (f"{IGNORE}{IGNORE}for = 'x'\n", "specfix.toml:4: an ignore has no key 'for'"),
        ("ignore = ['POS001']\n", "an ignore has a code, a reason"),
        ("fial-on = 'error'\n", "no setting 'fial-on'; there is fail-on"),
        ("fail-on = 'fatal'\n", 'fail-on is "fatal"'),
        ("select = 'POS'\n", 'select is "POS"'),
        ("engine = 1\n", "engine is 1"),
        ("x = \n", "is not valid TOML"),
        ("select = ['XYZ']\n", "specfix.toml: select: no rule's code starts with 'XYZ'"),
        (
            f"{IGNORE}[[ignore]]\ncode = 'XYZ'\nreason = 'x'\n",
            "specfix.toml:4: ignore: no rule's code starts with 'XYZ'",
        ),
    ],
)
def test_settings_that_cannot_be_followed(specfix: Run, project: Path, text: str, message: str) -> None:
    (project / "specfix.toml").write_text(text)
    done = specfix("check", *POS[:-2])
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_a_baseline_leaves_new_findings_alone(specfix: Run, project: Path) -> None:
    file = project / "debts.json"
    assert specfix("check", *POS, "--write-baseline", str(file)).returncode == 1
    done = specfix("check", *POS, "--baseline", str(file))
    assert done.returncode == 0 and "let pass POS001 draft-position-table: in the baseline" in done.stdout
    both = (*POS[:-1], "POS001,AUX001")
    done = specfix("check", *both, "--baseline", str(file), "--fail-on", "note")
    assert done.returncode == 1 and "note[AUX001]" in done.stdout
    (project / "specfix.toml").write_text('baseline = "debts.json"\n')
    assert specfix("check", *POS).returncode == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist: write it with --write-baseline"),
        ("{", "not valid JSON"),
        ('{"schema": "other", "findings": []}', "is no specfix/baseline-v1"),
        ('{"schema": "specfix/baseline-v1", "findings": [{"code": 1}]}', "which is no finding"),
    ],
)
def test_a_baseline_that_is_none(specfix: Run, project: Path, content: str | None, message: str) -> None:
    file = project / "debts.json"
    if content is not None:
        file.write_text(content)
    done = specfix("check", *POS, "--baseline", str(file))
    assert done.returncode == 2 and message in done.stderr


def test_a_baseline_that_cannot_be_written(specfix: Run, project: Path) -> None:
    done = specfix("check", *POS, "--write-baseline", str(project / "no" / "such.json"))
    assert done.returncode == 2 and "cannot be written" in done.stderr


UPGRADE = (*PAIR, "--select", "POS001", "--engine", "vllm==0.26.0", "--engine", "vllm==0.32.0")


def test_what_an_upgrade_changes(specfix: Run, project: Path) -> None:
    done = specfix("check", *UPGRADE)
    assert done.stdout.startswith("== vllm 0.26.0 -> vllm 0.32.0\n")
    told = json.loads(specfix("check", *UPGRADE, "--format", "json").stdout)
    (upgrade,) = told["upgrades"]
    assert told["schema"] == "specfix/upgrades-v1"
    # the compiled V2 runner dies; the later release raises the table, and there is nothing left to find there
    assert [found["phase"] for found in upgrade["gone"]] == ["runtime"]
    assert done.returncode == (1 if upgrade["new"] else 0)
    back = specfix("check", *UPGRADE[:-3], "vllm==0.32.0", "--engine", "vllm==0.26.0")
    assert back.returncode == 1 and "error[POS001]" in back.stdout


@pytest.mark.parametrize("form", ["sarif", "github", "junit", "markdown"])
def test_an_upgrade_in_other_formats(specfix: Run, project: Path, form: str) -> None:
    back = (*UPGRADE[:-3], "vllm==0.32.0", "--engine", "vllm==0.26.0", "--format", form)
    done = specfix("check", *back)
    assert done.returncode == 1 and "POS001" in done.stdout


def test_the_same_release_twice_changes_nothing(specfix: Run, project: Path) -> None:
    done = specfix("check", *UPGRADE[:-1], "vllm==0.26.0")
    assert done.returncode == 0 and done.stdout.endswith("0 new, 0 gone, 1 as before\n")


WHERE = ("--hardware", "h200", "--select", "POS001")
UP = (*WHERE, "--engine", "vllm==0.26.0", "--engine", "vllm==0.32.0")
DOWN = (*WHERE, "--engine", "vllm==0.32.0", "--engine", "vllm==0.26.0")


def test_an_upgrade_of_several_launches(specfix: Run, project: Path) -> None:
    (project / "deploy" / "a.yaml").write_text(launch(8192))
    (project / "deploy" / "b.yaml").write_text(launch(1024))
    done = specfix("gate", ".", *UP)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == [
        "a.yaml: vllm 0.26.0 -> vllm 0.32.0: 0 new, 1 gone, 0 as before",
        "b.yaml: vllm 0.26.0 -> vllm 0.32.0: 0 new, 0 gone, 0 as before",
    ]
    assert specfix("gate", ".", *DOWN).returncode == 1
    assert specfix("gate", ".", *DOWN, "--fail-on", "never").returncode == 0
    (project / "deploy" / "c.yaml").write_text("vllm: [\n")  # the others are told of all the same
    done = specfix("gate", ".", *DOWN)
    assert done.returncode == 2 and "error[POS001]" in done.stdout and "could not check: line 2" in done.stdout


def test_a_launch_that_one_release_reads_without_speculation(specfix: Run, project: Path) -> None:
    """``--spec-model`` is not a flag of older releases."""
    (project / "deploy" / "a.sh").write_text(f"vllm serve {TARGET} --spec-model {DRAFT} --spec-method eagle3\n")
    done = specfix("gate", ".", "--hardware", "h200", "--engine", "vllm==0.10.0", "--engine", "vllm==0.32.0")
    assert done.returncode == 2 and "a.sh" in done.stdout


@pytest.mark.parametrize("given", [".", "serve.yaml"])
def test_a_serve_file_with_flags_of_their_own_for_speculation(specfix: Run, project: Path, given: str) -> None:
    keys = {"model": TARGET, "spec-model": DRAFT, "spec-method": "eagle3", "spec-tokens": 5, "max-model-len": 8192}
    (project / "deploy" / "serve.yaml").write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))
    done = specfix("gate", given, "--engine", "vllm==0.26.0", *WHERE)
    assert done.returncode == 1 and "error[POS001]" in done.stdout


def test_what_is_wrong_for_all_is_said_once(specfix: Run, project: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (project / "deploy" / name).write_text(launch(1024))
    for wrong in (("--engine", "vllm==9.9"), ("--hardware", "toaster"), ("--select", "XYZ")):
        done = specfix("gate", ".", *wrong)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


MENTIONS = {
    "comment.yaml": "# vllm: was served with --speculative-config '{}'\nname: ci\n",
    "map.yaml": "apiVersion: v1\nkind: ConfigMap\ndata:\n  args: vllm serve m --speculative-config '{}'\n",
    "other.yaml": "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nspec:\n"
    "  args: [vllm, --speculative-config, '{}']\n",
}


@pytest.mark.parametrize("command", [("gate", "."), ("check", "--launch", ".")])
def test_a_file_that_mentions_speculation_and_starts_nothing(
    specfix: Run, project: Path, command: tuple[str, ...]
) -> None:
    for name, text in MENTIONS.items():
        (project / "deploy" / name).write_text(text)
    scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: vllm}\n"
    (project / "deploy" / "scaler.yaml").write_text(scaler)
    done = specfix(*command)
    assert done.returncode == 0
    assert done.stdout.count("note: mentions speculation, and no launch was read in it") == len(MENTIONS)
    told = " ".join(done.stdout.split())
    assert "(comment.yaml:1)" in told and "(map.yaml:4)" in told and "(other.yaml:4)" in told
    assert 'kind "InferenceService" is not one whose pods are known' in told


def test_a_launch_named_by_itself_must_start_something(specfix: Run, project: Path) -> None:
    for name, why in (("map.yaml", "starts no vLLM server"), ("other.yaml", 'line 2: kind "InferenceService"')):
        (project / "deploy" / name).write_text(MENTIONS[name])
        done = specfix("check", "--launch", name)
        assert done.returncode == 2 and why in done.stderr


def test_files_may_be_patterns_with_blanks(specfix: Run, project: Path) -> None:
    (project / "deploy" / "eu west").mkdir()
    for name in ("my launch.yaml", "eu west/a.yaml", "eu west/other.txt"):
        (project / "deploy" / name).write_text(launch(8192))
    where = ("--engine", "vllm==0.26.0", *WHERE)
    done = specfix("gate", "**/*.yaml", *where)
    assert done.returncode == 1
    assert [line.split("  ")[1] for line in done.stdout.splitlines()[-2:]] == [
        "eu west/a.yaml: 1 error",
        "my launch.yaml: 1 error",
    ]
    done = specfix("gate", "none/*.yaml", "my launch.yaml", *where)
    assert done.returncode == 2 and "unreadable  none/*.yaml: no file matches" in done.stdout
    (project / "deploy" / "my [1].yaml").write_text(launch(1024))  # a name wins over a pattern
    assert specfix("gate", "my [1].yaml", *where).stdout.endswith("pass  my [1].yaml: nothing found\n")


def test_a_file_that_is_not_there_is_no_pass(specfix: Run, project: Path) -> None:
    done = specfix("gate", "serve.yml")
    assert done.returncode == 2 and "unreadable  serve.yml: cannot be read" in done.stdout


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user who may not look everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user can look into, unlike the test's own."""
    folder = Path(tempfile.mkdtemp(prefix="specfix-"))
    folder.chmod(0o755)
    monkeypatch.chdir(folder)
    yield folder
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


WHERE_26 = ("--engine", "vllm==0.26.0", *WHERE)
SHUT = "the folder cannot be looked into: Permission denied"


def noted(done: Done) -> list[str]:
    """The remarks of a run, each in one line, in their order."""
    parts = " ".join(done.stdout.split()).split("note: ")[1:]
    return [part[: part.index(")") + 1] for part in parts]


@pytest.mark.parametrize("given", [".", "deploy", "**/*.yaml", "deploy/*/*.yaml", "dep*"])
@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_a_folder_that_is_met_and_may_not_be_looked_into(
    specfix: Run, open_folder: Path, given: str, mode: int
) -> None:
    for name in ("deploy/open", "deploy/shut", "deploy/.cache/shut", "deploy/__pycache__", "venv/a"):
        (open_folder / name).mkdir(parents=True)
    (open_folder / "deploy/open/a.yaml").write_text(launch(1024))
    for name in ("deploy/shut/b.yaml", "deploy/.cache/shut/b.yaml"):
        (open_folder / name).write_text(launch(8192))
    assert specfix("gate", given, *WHERE_26).returncode == 1
    for name in ("deploy/.cache/shut", "deploy/__pycache__", "venv/a", "deploy/shut"):
        (open_folder / name).chmod(mode)
    with without_rights():
        done = specfix("gate", given, *WHERE_26)
    assert done.returncode == 0 and done.stdout.endswith("pass  deploy/open/a.yaml: nothing found\n")
    assert noted(done)[-1] == f"{SHUT} (deploy/shut)"
    assert all("(deploy/shut" in each for each in noted(done))  # of what tools keep for themselves nothing is said


@pytest.mark.parametrize("given", ["deploy", "deploy/", "deploy/*.yaml", "deploy/*/*.yaml", "deploy/**", ".hidden"])
@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_a_folder_that_is_named_and_may_not_be_looked_into_is_no_pass(
    specfix: Run, open_folder: Path, given: str, mode: int
) -> None:
    for name in ("deploy", ".hidden"):
        (open_folder / name).mkdir()
        (open_folder / name / "a.yaml").write_text(launch(8192))
        (open_folder / name).chmod(mode)
    with without_rights():
        done = specfix("gate", given, *WHERE_26)
    assert done.returncode == 2 and done.stdout.count("cannot be looked into") == done.stdout.count("== ") * 2 == 2
    assert f"{Path(given).parts[0]}: {SHUT}" in done.stdout


@pytest.mark.parametrize(("given", "found"), [("home/*/run.yaml", 1), ("home/*/in/*.yaml", 1), ("home/*/*.yaml", 0)])
def test_a_folder_is_listed_only_where_names_are_compared(
    specfix: Run, open_folder: Path, given: str, found: int
) -> None:
    """What is named may be opened in a folder that cannot be listed."""
    for name in ("a", "b", "c"):
        (open_folder / "home" / name / "in").mkdir(parents=True)
        for file in ("run.yaml", "in/run.yaml"):
            (open_folder / "home" / name / file).write_text(launch(8192 if name == "a" else 1024))
    (open_folder / "home/a").chmod(0o711)
    (open_folder / "home/b").chmod(0o700)
    with without_rights():
        done = specfix("gate", given, *WHERE_26)
    assert done.returncode == found
    assert noted(done) == [f"{SHUT} (home/{name})" for name in ("b" if found else "ab")]


def test_a_pattern_of_which_nothing_can_be_read_is_no_pass(specfix: Run, open_folder: Path) -> None:
    (open_folder / "home/a").mkdir(parents=True)
    (open_folder / "home/a/run.yaml").write_text(launch(8192))
    (open_folder / "home/a").chmod(0o700)
    with without_rights():
        done = specfix("gate", "home/*/run.yaml", *WHERE_26)
    assert done.returncode == 2 and noted(done) == [f"{SHUT} (home/a)"]
    assert "home/*/run.yaml: no file matches" in done.stdout


@pytest.mark.parametrize("given", [".", "*"])
def test_links_that_may_not_be_followed(specfix: Run, open_folder: Path, given: str) -> None:
    """To a folder, or to a file that may be a launch; one that leads nowhere is no folder."""
    (open_folder / "other/shut/deploy").mkdir(parents=True)
    deploy = open_folder / "deploy"
    deploy.mkdir()
    (deploy / "a.yaml").write_text(launch(1024))
    (deploy / "d1").symlink_to("../other/shut/deploy")
    (deploy / "b.yaml").symlink_to("../other/shut/b.yaml")
    (deploy / "current").symlink_to("nowhere")
    (open_folder / "other/shut").chmod(0o700)
    os.chdir(deploy)
    (deploy / "current").unlink() if given == "*" else None  # a pattern names files of any kind
    with without_rights():
        done = specfix("gate", given, *WHERE_26)
    assert done.returncode == 0
    link = "is a link that cannot be followed" if given == "." else "cannot be read"
    assert sorted(noted(done)) == ["cannot be read: Permission denied (b.yaml)", f"{link}: Permission denied (d1)"]


def test_a_link_on_the_way_of_a_pattern_that_may_not_be_followed(specfix: Run, open_folder: Path) -> None:
    (open_folder / "shut/b").mkdir(parents=True)
    (open_folder / "home/a").mkdir(parents=True)
    (open_folder / "home/a/run.yaml").write_text(launch(1024))
    (open_folder / "home/b").symlink_to("../shut/b")
    (open_folder / "home/c").symlink_to("nowhere")
    (open_folder / "shut").chmod(0o700)
    with without_rights():
        done = specfix("gate", "home/*/run.yaml", *WHERE_26)
    assert done.returncode == 0
    assert noted(done) == ["is a link that cannot be followed: Permission denied (home/b)"]


def test_an_ignore_is_not_one_too_many_where_not_all_was_looked_at(specfix: Run, project: Path) -> None:
    (project / "specfix.toml").write_text(IGNORE)
    (project / "deploy/a.yaml").write_text(launch(1024))
    where = ("--engine", "vllm==0.26.0", "--hardware", "h200")
    told = "the ignore of POS001 named none of the findings"
    assert told in specfix("gate", ".", *where).stdout
    (project / "deploy/b.yaml").symlink_to("nowhere")
    done = specfix("gate", ".", *where)
    assert done.returncode == 0 and told not in done.stdout
    assert noted(done) == ["cannot be read: No such file or directory (b.yaml)"]


UNFIT = {"large": b"#" * 2_000_001, "Latin-1": "# für\n".encode("latin-1"), "binary": b"\0\5\x16\7\0\2\0\0Mac OS X\xff"}


@pytest.mark.parametrize("content", UNFIT.values(), ids=UNFIT)
@pytest.mark.parametrize("name", ["pnpm-lock.yaml", "._run.sh"])
@pytest.mark.parametrize("given", [".", "*", "it"])
def test_a_file_that_is_no_text_matters_where_it_speaks_of_vllm(
    specfix: Run, project: Path, content: bytes, name: str, given: str
) -> None:
    deploy = project / "deploy"
    (deploy / "a.yaml").write_text(launch(1024))
    (deploy / name).write_bytes(content)
    files = {".": ["."], "*": [f"{name[:3]}*", "a.yaml"], "it": [name, "a.yaml"]}[given]
    done = specfix("gate", *files, *WHERE_26)
    assert done.returncode == 0 and "unreadable" not in done.stdout
    for said in (b"vLLM serve\n", "vllm serve\n".encode("utf-16-le")):
        (deploy / name).write_bytes(said + content)
        done = specfix("gate", *files, *WHERE_26)
        assert done.returncode == 2 and f"unreadable  {name}: " in done.stdout


@pytest.mark.parametrize("name", ["start", "uv.lock", "README"])
def test_a_file_of_any_name_that_is_no_text(specfix: Run, project: Path, name: str) -> None:
    """A script may bear a name without an end; other files are given to a gate because they were changed."""
    (project / "deploy" / name).write_bytes(b"vllm serve\n" + UNFIT["large"] if name == "uv.lock" else b"\xff")
    assert specfix("gate", name, *WHERE).returncode == 0
    (project / "deploy" / name).write_bytes(b"vllm serve \xff")
    assert specfix("gate", name, *WHERE).returncode == (0 if name == "uv.lock" else 2)
    assert specfix("gate", f"{name[:-1]}*", *WHERE).returncode == 0
    assert specfix("check", "--launch", name, *WHERE).returncode == 2


def test_a_folder_of_launches_holds_other_files_too(specfix: Run, project: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (project / "deploy" / name).write_text(launch(1024))
    (project / "deploy/lock.yaml").write_bytes(UNFIT["Latin-1"])
    assert specfix("check", "--launch", ".", *WHERE_26).returncode == 0
    assert specfix("check", "--launch", "lock.yaml", *WHERE_26).returncode == 2


def test_a_file_that_may_not_be_read_is_no_pass(specfix: Run, open_folder: Path) -> None:
    file = open_folder / "start"
    file.write_text("echo\n")
    assert specfix("gate", "start", *WHERE).returncode == 0
    file.chmod(0)
    with without_rights():
        done = specfix("gate", "start", *WHERE)
    assert done.returncode == 2 and "unreadable  start: cannot be read: Permission denied" in done.stdout


@pytest.mark.parametrize("name", ["absent", "broken", "broken.yaml", "loop", "loop/a.yaml", "pipe"])
@pytest.mark.parametrize("command", [("gate",), ("check", "--launch")])
def test_what_is_not_there_is_no_pass(specfix: Run, project: Path, command: tuple[str, ...], name: str) -> None:
    for link in ("broken", "broken.yaml"):
        Path(link).symlink_to("nowhere")
    Path("loop").symlink_to("loop")
    os.mkfifo("pipe")
    done = specfix(*command, name, *WHERE)
    assert done.returncode == 2 and f"{name}" in done.stdout + done.stderr
    assert "cannot be read" in done.stdout + done.stderr


@pytest.mark.parametrize("command", [("gate",), ("check", "--launch")])
def test_a_name_that_is_empty_is_not_this_folder(specfix: Run, project: Path, command: tuple[str, ...]) -> None:
    done = specfix(*command, "", *WHERE)
    assert (done.returncode, done.stdout) == (2, "") and "the name of a file is empty" in done.stderr


def test_links_within_a_folder(specfix: Run, project: Path) -> None:
    where = ("--engine", "vllm==0.26.0", *WHERE)
    (project / "other").mkdir()
    (project / "other/b.yaml").write_text(launch(8192))
    deploy = project / "deploy"
    (deploy / "sub").mkdir()
    (deploy / "sub/a.yaml").write_text(launch(1024))
    (deploy / "sub/up").symlink_to("..")  # in a circle
    (deploy / "again").symlink_to("sub")
    (deploy / ".#a.yaml").symlink_to("someone@here.123")  # an editor's lock
    done = specfix("gate", ".", *where)
    assert done.returncode == 0 and "note:" not in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("== ")] == ["== sub/a.yaml"]
    (deploy / "there").symlink_to("../other")
    done = specfix("gate", ".", *where)
    assert "note: is a link to a folder elsewhere, and was not followed: name that too (there)" in done.stdout
    assert specfix("gate", ".", "there", *where).returncode == 1
    for name in ("sub/c.yaml", ".cache/d.sh"):  # of what tools keep for themselves nothing is said
        (deploy / name).parent.mkdir(exist_ok=True)
        (deploy / name).symlink_to("nowhere")
    for given in (".", "sub/*.yaml"):
        done = specfix("gate", given, *where)
        assert done.returncode == 0 and "cannot be read: No such file or directory (sub/c.yaml)" in noted(done)
        assert ".cache" not in done.stdout
    assert specfix("gate", "sub/c.yaml", *where).returncode == 2


def test_only_a_link_is_an_editors_lock(specfix: Run, project: Path) -> None:
    (project / "deploy" / ".#a.yaml").write_text(launch(8192))
    assert specfix("gate", ".", *WHERE_26).returncode == 1


@pytest.mark.parametrize("command", [("gate", "."), ("gate", ".."), ("check", "--launch", "."), ("check", *PAIR)])
def test_a_working_directory_that_is_gone_is_no_pass(
    specfix: Run, project: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Neither the files nor the settings can be looked for."""
    (project / "gone").mkdir()
    monkeypatch.chdir(project / "gone")
    (project / "gone").rmdir()
    done = specfix(*command, "--engine", "vllm==0.26.0")
    monkeypatch.chdir(project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("specfix: error: the working directory is gone (") and done.stderr.count("\n") == 1


def unreadable(file: Path, kind: str) -> None:
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "large":
        file.write_text("#" * 1_000_001)
    elif kind == "Latin-1":
        file.write_bytes("# für\n".encode("latin-1"))
    else:
        file.symlink_to(file.name if kind == "loop" else "nowhere")


KINDS = ["broken", "loop", "folder", "pipe", "large", "Latin-1"]


@pytest.mark.parametrize("kind", KINDS)
def test_settings_that_cannot_be_read_are_not_none(specfix: Run, project: Path, kind: str) -> None:
    file = project / "specfix.toml"
    unreadable(file, kind)
    for command in (("check", *POS), ("gate", ".")):
        done = specfix(*command)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"specfix: error: {file} ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_pyproject_of_others_is_none(specfix: Run, project: Path, kind: str) -> None:
    (project / "specfix.toml").write_text('fail-on = "never"\n')
    unreadable(project / "deploy/pyproject.toml", kind)
    assert specfix("check", *POS).returncode == 0


@pytest.mark.parametrize("kind", ["large", "Latin-1", "invalid"])
def test_a_pyproject_that_speaks_of_specfix_and_cannot_be_read_is_not_none(
    specfix: Run, project: Path, kind: str
) -> None:
    file = project / "pyproject.toml"
    if kind != "invalid":
        unreadable(file, kind)
    file.write_bytes(b'[tool.specfix]\nfail-on = "never"\n' + (b"[" if kind == "invalid" else file.read_bytes()))
    done = specfix("check", *POS)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(f"specfix: error: {file} ")


@pytest.mark.parametrize(("name", "status"), [("specfix.toml", 2), ("pyproject.toml", 0)])
def test_settings_that_may_not_be_read(specfix: Run, open_folder: Path, name: str, status: int) -> None:
    (open_folder / name).write_text("")
    assert specfix("gate", ".").returncode == 0
    (open_folder / name).chmod(0)
    with without_rights():
        done = specfix("gate", ".")
    assert done.returncode == status
    assert (f"{open_folder / name} cannot be read: Permission denied" in done.stderr) == bool(status)


@pytest.mark.parametrize("option", ["--baseline", "--hardware"])
@pytest.mark.parametrize("kind", ["broken", "loop"])
def test_other_files_that_cannot_be_read(specfix: Run, project: Path, option: str, kind: str) -> None:
    file = project / "given.json"
    file.symlink_to("given.json" if kind == "loop" else "nowhere")
    done = specfix("check", TARGET, DRAFT, "--engine", "vllm==0.26.0", option, str(file))
    assert (done.returncode, done.stdout) == (2, "") and str(file) in done.stderr


def test_a_gate_has_one_form_for_one_launch_and_many(specfix: Run, project: Path) -> None:
    (project / "deploy" / "a.yaml").write_text(launch(1024))
    told = json.loads(specfix("gate", "a.yaml", *WHERE, "--format", "json").stdout)
    assert (told["schema"], [each["name"] for each in told["reports"]]) == ("specfix/reports-v1", ["a.yaml"])


def test_what_launches_share_is_read_once(specfix: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from specfix.engines import find
    from specfix.launch import parser

    asked: Counter[str] = Counter()

    def counted(module: ModuleType, name: str) -> None:
        before = getattr(module, name)

        def count(*given: Any) -> Any:
            asked[name] += 1
            return before(*given)

        monkeypatch.setattr(module, name, count)

    counted(parser, "make_parser")
    counted(find, "load")
    find._loaded.cache_clear()
    for number in range(3):
        (project / "deploy" / f"{number}.yaml").write_text(launch(1024 + number))
    assert specfix("gate", ".", *WHERE, "--engine", "vllm==0.24.0").returncode == 0
    assert asked == {"load": 1, "make_parser": 1}


def test_gate_passes_over_what_starts_no_speculation(specfix: Run, project: Path) -> None:
    speculative = json.dumps({"method": "eagle3", "model": DRAFT})
    serve = f"model: {TARGET}\nmax-model-len: 8192\n"
    (project / "a.yaml").write_text(f"{serve}speculative-config: {speculative}\n")
    (project / "b.yaml").write_text(serve)
    (project / "c.yaml").write_text("name: CI\non: [push]\n")
    (project / "d.sh").write_text("echo hello\n")
    files = [str(project / name) for name in ("a.yaml", "b.yaml", "c.yaml", "d.sh")]
    where = ("--engine", "vllm==0.26.0", "--hardware", "h200", "--select", "POS001")
    done = specfix("gate", *files, *where)
    assert (done.returncode, done.stderr) == (1, "") and done.stdout.count("POS001") == 1 + done.stdout.count("explain")
    assert specfix("gate", *files[1:], *where).returncode == 0
    (project / "e.yaml").write_text("a: [\n")  # it may be anything
    assert specfix("gate", *files[1:], str(project / "e.yaml"), *where).returncode == 0
    (project / "e.yaml").write_text("vllm: [\n")
    assert specfix("gate", *files[1:], str(project / "e.yaml"), *where).returncode == 2
