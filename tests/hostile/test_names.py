"""Names stay names: what is written starts the server with the very words that came in, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import Run
from .makers import DRAFT, HOW, TARGET, config, model, refused

NAMES = [
    "$(touch ran)",
    "`touch ran`",
    "a b  c",
    "-rf",
    "--port",
    "a'b\"c",
    "a;touch ran;",
    "a\nb\ttouch ran",
    "{ran,x}*?[a]",
    "é\N{CJK UNIFIED IDEOGRAPH-6A21}",
    "a\x1b[2Jb",
    "\N{RIGHT-TO-LEFT OVERRIDE}txt",
    "!!python/object",
    "#x: y",
    "~",
    "a\\",
    "%s$HOME",
]
STUB = """#!/usr/bin/env python3
import json, os, sys
json.dump({"argv": sys.argv[1:], "env": os.environ.get("NOTED")}, open(os.environ["RECORD"], "w"))
"""


def started(out: Path, home: Path) -> dict[str, Any]:
    """What a real bash hands to ``vllm``."""
    (home / "bin").mkdir()
    (home / "bin/vllm").write_text(STUB)
    (home / "bin/vllm").chmod(0o755)
    env = {**os.environ, "PATH": f"{home / 'bin'}:{os.environ['PATH']}", "RECORD": str(home / "record.json")}
    done = subprocess.run(
        ["bash", str(out / "launch.sh")], cwd=home, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "" and done.stderr == ""
    given: dict[str, Any] = json.loads((home / "record.json").read_text())
    return given


def options(argv: list[str]) -> dict[str, str]:
    assert argv[0] == "serve"
    return dict(zip(argv[2::2], argv[3::2], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stays_a_name(specfix: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    models = tmp_path / "models"
    models.mkdir()
    target = model(models / name, {}, TARGET)
    model(models / f"d{name}", {})
    monkeypatch.chdir(models)
    given = (
        f"./{name}",
        f"./d{name}",
        *HOW,
        "--env",
        f"NOTED={name}",
        "--flag",
        f"served-model-name={json.dumps(name)}",
    )
    out = tmp_path / "out"
    said = specfix("fix", *given, "--flag", f"hf-overrides={json.dumps({'x': name})}", "--out", str(out))
    assert said.status == 0 and "\x1b" not in said.out and "\N{RIGHT-TO-LEFT OVERRIDE}" not in said.out, said
    ran = started(out, tmp_path)
    written = yaml.safe_load((out / "serve.yaml").read_text())
    flags = options(ran["argv"])
    assert ran["argv"][1] == written["model"] == target
    assert ran["env"] == name and flags["--served-model-name"] == written["served-model-name"] == name
    assert json.loads(flags["--hf-overrides"])["x"] == name
    speculative = written["speculative-config"]
    speculative = json.loads(speculative) if isinstance(speculative, str) else speculative
    assert json.loads(flags["--speculative-config"]) == speculative
    assert speculative["model"] == str(out / "draft")
    assert not any(path.name == "ran" for path in tmp_path.rglob("*"))
    assert "\x1b" not in (out / "launch.sh").read_text().split("\nset ")[0]  # the comment that names the pair


def test_values_of_configs_stay_values(specfix: Run, tmp_path: Path) -> None:
    """A name of a class, and a method out of the draft's own config, hold no words for a shell."""
    strange = "Eagle'$(touch ran)`touch ran`\"\n;touch ran"
    draft = model(tmp_path / "d", {"config.json": config(architectures=[strange, "LlamaForCausalLMEagle3"], x=strange)})
    said = specfix("fix", str(TARGET), draft, *HOW, "--out", str(tmp_path / "out"))
    assert said.status in (0, 1) and (tmp_path / "out").is_dir(), said
    started(tmp_path / "out", tmp_path)
    assert json.loads((tmp_path / "out/draft/config.json").read_text())["x"] == strange
    assert not list(tmp_path.rglob("ran"))


def test_links_are_linked_and_never_written_through(specfix: Run, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copy(DRAFT / "config.json", outside / "config.json")
    (outside / "secret").write_text("as it was")
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    links = {name: lambda path: path.symlink_to("../outside/secret") for name in ("launch.sh", "report.json", "x.json")}
    draft = model(tmp_path / "d", links)
    (tmp_path / "d/config.json").unlink()
    (tmp_path / "d/config.json").symlink_to("../outside/config.json")
    (tmp_path / "d/folder").symlink_to("../outside")
    (tmp_path / "d/root").symlink_to("/")
    (tmp_path / "d/nowhere").symlink_to("/no/such/file")
    for _ in range(2):
        assert specfix("fix", str(TARGET), draft, *HOW, "--out", str(tmp_path / "out")).status == 0
    written = tmp_path / "out/draft"
    assert not (written / "config.json").is_symlink()
    assert {each.name: each.readlink() for each in written.iterdir() if each.is_symlink()} == {
        name: tmp_path / "d" / name for name in (*links, "folder", "root", "nowhere")
    }
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
    for name in ("out2", "out3"):  # a link, and a folder below one, are not written through
        (tmp_path / name).symlink_to("outside")
    refused(specfix("fix", str(TARGET), draft, *HOW, "--out", str(tmp_path / "out2")), "is a link")
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
