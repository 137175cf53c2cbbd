"""No code that came with a model, a launch, a folder or an engine's source is run."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run
from .makers import DRAFT, HOW, TARGET, bounded, config, model, script, serve_yaml

RUN_BY_NAME = ("json", "yaml", "typer", "re", "sitecustomize", "usercustomize", "conftest", "setup", "triton", "torch")


class Pickled:
    """What a .bin holds that runs a command when it is loaded."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


class Canaries:
    """Files that would each write one of their own below ``sung``."""

    def __init__(self, home: Path) -> None:
        self.sung = home / "sung"
        self.sung.mkdir()

    def python(self, name: str) -> str:
        return f"open({str(self.sung / name)!r}, 'w').close()\n"

    def shell(self, name: str) -> str:
        return f"touch {self.sung / name}"

    def folder(self, path: Path, of: Path) -> str:
        """A model's folder with every kind."""
        call = f"{{{{ ().__class__.__base__.__subclasses__()[0].open('{self.sung / 'template'}', 'w') }}}}"
        return model(
            path,
            {
                "config.json": self.config(of),
                "modeling_x.py": self.python("modeling").encode(),
                "configuration_x.py": self.python("configuration").encode(),
                "pytorch_model.bin": pickle.dumps(Pickled(self.shell("pickle"))),
                "tokenizer_config.json": json.dumps({"chat_template": call}).encode(),
                "chat_template.jinja": call.encode(),
                "tokenizer.json": b'{"model": {"vocab": {"a": 0}}}',
                "evil.pth": f"import os; {self.python('pth')}".encode(),
                "pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "setup"\n',
                **{f"{name}.py": self.python(f"module-{name}").encode() for name in RUN_BY_NAME},
            },
            of,
        )

    def config(self, of: Path) -> bytes:
        values = json.loads((of / "config.json").read_text())
        auto_map = {"AutoConfig": "configuration_x.XConfig", "AutoModelForCausalLM": "modeling_x.XModel"}
        return json.dumps({**values, "auto_map": auto_map, "trust_remote_code": True}, indent=1).encode()


@pytest.fixture
def canaries(tmp_path: Path) -> Canaries:
    return Canaries(tmp_path)


@pytest.fixture
def pair(canaries: Canaries, tmp_path: Path) -> tuple[str, str]:
    return canaries.folder(tmp_path / "target", TARGET), canaries.folder(tmp_path / "draft", DRAFT)


def test_the_canaries_sing(canaries: Canaries, pair: tuple[str, str]) -> None:
    """Each of them, where it is run: else the other tests would show nothing."""
    folder = Path(pair[1])
    pickle.loads((folder / "pytorch_model.bin").read_bytes())
    for file in ("modeling_x.py", "configuration_x.py", "json.py"):
        subprocess.run([sys.executable, str(folder / file)], check=True)
    subprocess.run([sys.executable, "-S", "-c", "import json"], cwd=folder, check=True)
    assert {"pickle", "modeling", "configuration", "module-json"} <= {path.name for path in canaries.sung.iterdir()}


def test_a_check_and_a_repair_from_within_the_models_folder(
    canaries: Canaries, pair: tuple[str, str], tmp_path: Path
) -> None:
    draft = Path(pair[1])
    assert bounded("check", *pair, *HOW, "--flag", "trust-remote-code=true", cwd=draft).status == 1
    fixed = bounded("fix", *pair, *HOW, "--out", str(tmp_path / "out"), cwd=draft)
    assert fixed.status == 0, fixed
    assert bounded("hardware", cwd=draft).status == 0
    assert list(canaries.sung.iterdir()) == []


@pytest.mark.parametrize("name", ["serve.yaml", "run.sh"])
def test_launches(specfix: Run, canaries: Canaries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(canaries.folder(tmp_path / "folder", DRAFT))
    objects = f"a: !!python/object/apply:os.system ['{canaries.shell('yaml')}']\n"
    command = canaries.shell("script")
    run = f"{command}\nX=$({command})\n{script(f'--seed `{command}` --port $({command})')}"
    Path(name).write_text(serve_yaml(objects) if name == "serve.yaml" else run)
    assert specfix("check", "--launch", name, *HOW[-4:]).status < 2
    assert specfix("fix", "--launch", name, *HOW[-4:], "--out", "out").status < 2
    assert specfix("gate", ".", *HOW[-4:]).out
    assert list(canaries.sung.iterdir()) == []


def test_a_source_tree_of_an_engine(canaries: Canaries, pair: tuple[str, str], tmp_path: Path) -> None:
    """It is read, as far as it goes, in a process that starts where the user stands: in the draft's folder."""
    source = tmp_path / "source"
    (source / "vllm").mkdir(parents=True)
    for file in ("setup.py", "conftest.py", "sitecustomize.py", "vllm/__init__.py", "vllm/envs.py", "vllm/version.py"):
        (source / file).write_text(canaries.python(file.replace("/", "-")))
    (source / "x.pth").write_text(f"import os; {canaries.python('pth')}")
    (source / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "setup"\n')
    said = bounded(
        *("check", *pair, *HOW[:-4], "--hardware", "h200", "--engine", str(source)),
        cwd=Path(pair[1]),
        env={"XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert said.status == 2 and str(source) in said.err
    assert list(canaries.sung.iterdir()) == []


def test_triton_is_asked_for_where_it_is_installed_alone(canaries: Canaries, pair: tuple[str, str]) -> None:
    from specfix.deployment.probe import COUNT_DRIVERS

    subprocess.run([sys.executable, "-c", COUNT_DRIVERS], cwd=pair[1], capture_output=True, check=False)
    assert list(canaries.sung.iterdir()) == []


def test_pickled_weights_are_no_weights(tmp_path: Path) -> None:
    made = {"pytorch_model.bin": pickle.dumps(Pickled("false")), "config.json": config()}
    said = bounded("check", str(TARGET), model(tmp_path / "m", made), *HOW)
    told = " ".join(said.out.split())
    assert said.status == 1 and f"a safetensors header of {tmp_path / 'm'}" in told
    assert f"{tmp_path / 'm'}/pytorch_model.bin is a pickle, which may run code and is not read" in told


def test_a_package_of_rules_in_the_working_directory(canaries: Canaries, tmp_path: Path) -> None:
    entry = tmp_path / "evil-1.0.dist-info"
    entry.mkdir()
    (entry / "entry_points.txt").write_text("[specfix.rules]\nevil=evil\n")
    (entry / "METADATA").write_text("Name: evil\nVersion: 1\n")
    (tmp_path / "evil.py").write_text(canaries.python("rules"))
    done = subprocess.run([sys.executable, "-m", "specfix", "rules"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0 and list(canaries.sung.iterdir()) == []
