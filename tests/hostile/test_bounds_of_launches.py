"""Launch files, settings and other inputs from strangers: bounded, and never waited for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Run
from .makers import (
    DEEP,
    DRAFT,
    EXAMPLES,
    HOW,
    NO_FILES,
    TARGET,
    WHERE,
    Maker,
    bounded,
    compose,
    laughs,
    refused,
    script,
    serve_yaml,
    sparse,
)

PAIR = (str(TARGET), str(DRAFT), *HOW)
HEAVY: dict[str, tuple[str, str | Maker, str]] = {
    "a gigabyte": ("serve.yaml", sparse(1 << 30), "more than the 2,000,000 bytes"),
    "anchors": ("serve.yaml", laughs() + serve_yaml(), "more than 100,000 values"),
    "merges": ("serve.yaml", laughs(merges=True) + serve_yaml(), "more than 100,000 values"),
    "list": ("serve.yaml", serve_yaml(f"x: [{'a,' * 900_000}a]\n"), "more than 100,000 values"),
    "documents": ("serve.yaml", "---\n" * 490_000 + serve_yaml(), "more than 100,000 values"),
    "services": ("compose.yaml", "services:\n" + "".join(f" s{n}: {{}}\n" for n in range(150_000)), "100,000 values"),
    "words": ("run.sh", script("x " * 99_000), "more than 50,000 words"),
}


def written(folder: Path, name: str, made: str | Maker) -> str:
    path = folder / name
    if isinstance(made, str):
        path.write_text(made)
    else:
        made(path)
    return str(path)


@pytest.mark.parametrize(("name", "made", "message"), HEAVY.values(), ids=HEAVY)
def test_size_is_bounded_before_memory_is(
    specfix: Run, tmp_path: Path, request: pytest.FixtureRequest, name: str, made: str | Maker, message: str
) -> None:
    """Those that would fill memory, in a process that has little of it."""
    file = written(tmp_path, name, made)
    run = bounded if request.node.callspec.id in ("a gigabyte", "list", "documents") else specfix
    refused(run("check", "--launch", file, *WHERE), file, message)


@pytest.mark.parametrize(
    ("name", "made", "message"),
    [
        ("s.yaml", serve_yaml(f"x: {DEEP}\n"), "nesting|nested"),
        ("s.yaml", serve_yaml("x:\n  " + "- " * 100_000 + "a\n"), "nesting|nested"),
        ("s.yaml", serve_yaml("a: &a {<<: *a}\n"), "nested too deep"),
        ("s.yaml", serve_yaml("a: &a {b: &b {<<: *a}}\n"), "nested too deep"),
        ("s.yaml", serve_yaml("a: &a [*a]\n"), "nested too deep"),
        ("s.yaml", "---\nmodel: a\n" * 3_000, "more than 20 documents of flags"),
        ("s.yaml", serve_yaml("a: \0\n"), "not valid YAML"),
        ("s.yaml", "", "starts no vLLM server"),
        ("c.yaml", "services:\n" + compose("").partition("\n")[2] * 1, "known only where it runs|^$"),
        (
            "c.yaml",
            compose(f"env_file: [{', '.join(f'a{n}' for n in range(101))}]"),
            "more than 100 files of variables",
        ),
        ("r.sh", script() * 201, "more than the 200 servers|characters"),
        ("r.sh", script(before="".join(f"export VLLM_{n}=1\n" for n in range(2_001))), "more than the 2,000 variables"),
        ("r.sh", f"vllm serve {TARGET} --speculative-config '{{\"a\": {DEEP[:80_000]}'", "nested|recursion|valid JSON"),
        ("r.sh", script("--max-model-len " + "9" * 400 + ".5k"), ""),
    ],
)
def test_what_has_no_end(specfix: Run, tmp_path: Path, name: str, made: str, message: str) -> None:
    said = specfix("check", "--launch", written(tmp_path, name, made), *WHERE)
    assert "Traceback" not in said.err and "INT001" not in said.out
    if said.status == 2:
        assert said.err.count("\n") == 1
    assert re.search(message, said.out + said.err, re.MULTILINE), said.err


@pytest.mark.parametrize("nested", ["$(" * 60_000 + ")" * 60_000, '"$(' * 30_000 + ')"' * 30_000, "`" * 99_999])
def test_commands_within_commands(specfix: Run, tmp_path: Path, nested: str) -> None:
    said = specfix("check", "--launch", written(tmp_path, "r.sh", script(f"--seed {nested}")), *WHERE)
    assert said.status < 2 and said.err == ""


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("name", ["s.yaml", "r.sh"])
def test_a_launch_that_is_no_file(specfix: Run, tmp_path: Path, name: str, kind: str) -> None:
    if kind != "folder":  # of launches
        file = written(tmp_path, name, NO_FILES[kind])
        refused(specfix("check", "--launch", file, *WHERE), f"{file} cannot be read")
        refused(specfix("fix", "--launch", file, *WHERE, "--diff"), f"{file} cannot be read")
        said = specfix("gate", str(tmp_path))  # below a folder files are looked for; what a link should lead to was one
        assert said.status == 0 and ("note: cannot be read" in said.out) == (kind == "loop")


@pytest.mark.parametrize("kind", NO_FILES)
def test_files_that_a_launch_names_and_are_none(specfix: Run, tmp_path: Path, kind: str) -> None:
    named = written(tmp_path, "named.yaml", NO_FILES[kind])
    refused(specfix("check", *WHERE, "--", "vllm", "serve", "--config", named), f"{named} cannot be read")
    said = specfix("check", "--launch", written(tmp_path, "c.yaml", compose(f"env_file: {named}")), *WHERE)
    assert said.status < 2 and f"variables that {named} may set are known only where it runs" in said.out


@pytest.mark.parametrize("kind", [*NO_FILES, "gigabyte", "garbage"])
def test_a_shim_that_is_none(specfix: Run, tmp_path: Path, kind: str) -> None:
    shim, info = tmp_path / "specfix_shim", tmp_path / "specfix_shim-1.dist-info"
    shim.mkdir()
    info.mkdir()
    (shim / "manifest.json").write_text("{}")
    garbage: Maker = lambda path: path.write_bytes(b"\xff")  # noqa: E731
    makers = {**NO_FILES, "gigabyte": sparse(1 << 30), "garbage": garbage}
    for path in (shim / "manifest.sha256", info / "entry_points.txt", shim / "__init__.py"):
        makers[kind](path)
    said = specfix("check", *PAIR, "--env", f"PYTHONPATH={tmp_path}")
    refused(said, f"PYTHONPATH names {tmp_path}")


@pytest.mark.parametrize("kind", NO_FILES)
def test_other_inputs_that_are_no_files(
    specfix: Run, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "given.json", NO_FILES[kind])
    refused(specfix("check", *PAIR, "--hardware", path), path)
    refused(specfix("check", *PAIR, "--baseline", path), path)
    if kind not in ("folder", "loop"):
        refused(specfix("check", *PAIR[:-4], "--hardware", "h200", "--engine", path), path)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    written(project, "specfix.toml", NO_FILES[kind])
    refused(specfix("check", *PAIR), str(project / "specfix.toml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + DEEP, "not valid TOML"),
        ("strict = " + "9" * 10_000, "not valid TOML"),
        ("strict = 0x" + "f" * 10_000, "strict is"),
        ("a" + ".a" * 100_000 + " = 1", "more than 2,000 dots"),
        ("[[ignore]]\ncode = 'POS'\nreason = 'x'\n" * 1_001, "more than 1,000 codes"),
        ("a = '\0'", "not valid TOML"),
        ("x" * 1_000_001, "is larger than 1000000 bytes"),
    ],
)
def test_settings_without_end(
    specfix: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specfix.toml").write_text(text)
    refused(specfix("check", *PAIR), str(tmp_path / "specfix.toml"), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--speculative-config", '{"a": ' * 20_000 + "1" + "}" * 20_000), "nested more than 100 levels"),
        (("--speculative-config", f'{{"a": {"9" * 10_000}}}'), "an integer of 10,000 digits"),
        (("--speculative-config", '{"quantization": "\\ud800"}'), "half of a surrogate pair"),
        (("--flag", "hf-overrides=" + '{"max_position_embeddings": 1e999}'), "/max_position_embeddings is Infinity"),
        (("--engine", "9" * 5_000), "is no release"),
        (("--engine", "x" * 100_000), "is no release"),
    ],
)
def test_options_without_end(specfix: Run, given: tuple[str, ...], message: str) -> None:
    refused(specfix("check", str(TARGET), str(DRAFT), *given, *(() if given[0] == "--engine" else WHERE)), message)


@pytest.mark.parametrize("value", ['{"a": ' * 20_000 + "1" + "}" * 20_000, '{"a": ' * 200 + "1" + "}" * 200])
def test_overrides_that_are_nested_without_end(specfix: Run, value: str) -> None:
    said = specfix("check", *PAIR, "--flag", f"hf-overrides={value}")
    assert said.status in (1, 2) and "Traceback" not in said.err and "INT001" not in said.out


def test_what_is_found_below_a_folder_is_not_waited_for(specfix: Run, tmp_path: Path) -> None:
    for name, maker in NO_FILES.items():
        maker(tmp_path / f"{name}.yaml")
    (tmp_path / "up").symlink_to("..")
    (tmp_path / "llm.yaml").write_text(serve_yaml())
    said = specfix("gate", str(tmp_path), *WHERE)
    assert said.status == 1 and said.out.count("fail  ") == 1 and str(EXAMPLES) in said.out
