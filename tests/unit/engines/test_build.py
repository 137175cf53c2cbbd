"""Making the shipped facts, from a folder of sources and from wheels."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from specfix.engines import build
from specfix.engines.build import main
from specfix.engines.readers import NEEDED
from specfix.engines.serial import load
from specfix.errors import CannotCheck

ROPE = """
class RotaryEmbedding:
    def _compute_cos_sin_cache(self):
        return torch.arange(self.max_position_embeddings)

def get_rope(head_size, max_position, rope_parameters):
    if scaling_type == "default":
        rotary_emb = RotaryEmbedding(head_size, head_size, max_position, 1)
    return rotary_emb
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for version in ("1.0", "1.1"):
        for file, cls in NEEDED.items():
            path = tmp_path / "sources" / version / "vllm" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"class {cls}: ..." if cls else "")
    return tmp_path / "sources"


def test_facts_are_written_and_checked(sources: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["1.0", "--from", str(sources), "--out", str(tmp_path)]
    assert main(arguments) == 0
    engine = load((tmp_path / "vllm-1.0.json").read_text("utf-8"))
    assert (engine.version, engine.source) == ("1.0", "shipped")
    assert main([*arguments, "--check"]) == 0
    assert capsys.readouterr().out.endswith("vllm 1.0: as shipped\n")
    rope = sources / "1.0/vllm/model_executor/layers/rotary_embedding.py"
    rope.parent.mkdir(exist_ok=True)
    rope.write_text(ROPE)
    assert main([*arguments, "--check"]) == 1
    assert (
        capsys.readouterr().out
        == "vllm 1.0: rope.fractions_only, rope.needed, rope.rows, rope.share_bounded, unknown.rope.mrope, "
        "unknown.rope.needed, unknown.rope.rows, unknown.rope.type_pairs, unknown.rope.types\n"
    )
    assert main(arguments) == 0
    rope.write_text(ROPE.replace('== "default"', 'in ("default", "ntk")'))
    capsys.readouterr()
    assert main([*arguments, "--check"]) == 1
    assert capsys.readouterr().out == "vllm 1.0: rope.rows.ntk\n"
    (tmp_path / "vllm-1.0.json").write_text("{")
    assert main([*arguments, "--check"]) == 1


def test_a_release_that_cannot_be_read_keeps_its_file(
    sources: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["1.0", "1.1", "--from", str(sources), "--out", str(tmp_path)]  # each in a process of its own
    assert main(arguments) == 0
    before = (tmp_path / "vllm-1.0.json").read_text("utf-8")
    (sources / "1.0/vllm/envs.py").unlink()
    capsys.readouterr()
    assert main(arguments) == 1
    assert (tmp_path / "vllm-1.0.json").read_text("utf-8") == before
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  unknown ")]
    assert "envs.py is missing" in lines[0]
    assert lines[1].startswith(f"{tmp_path / 'vllm-1.1.json'}: ")


class Index:
    """Stands for pip: knows some releases, and hands out a wheel."""

    def __init__(self, sources: Path, line: str) -> None:
        self.sources, self.line = sources, line
        self.asked: list[str] = []

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if "index" in command:
            return subprocess.CompletedProcess(command, 0, f"vllm (1.1)\n{self.line}\n")
        version = command[-1].removeprefix("vllm==")
        self.asked.append(version)
        assert "--only-binary=:all:" in command
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "vllm.whl", "w") as wheel:
            for file in (self.sources / version).rglob("*.py"):
                wheel.write(file, file.relative_to(self.sources / version))
            wheel.writestr("vllm/__init__.py", "")
            metadata = f"Metadata-Version: 2.4\nName: vllm\nVersion: {version}\nRequires-Dist: torch==2.9.0\n"
            wheel.writestr(f"vllm-{version}.dist-info/METADATA", metadata)
        return subprocess.CompletedProcess(command, 0)


def test_all_releases_of_the_index(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index(sources, "Available versions: 1.0, 0.10.0, 0.9.2, 0.8.5.post1")
    monkeypatch.setattr(subprocess, "run", index)
    assert build.released() == ["0.10.0", "1.0"]
    monkeypatch.setattr(build, "released", lambda: ["1.0"])
    assert main(["--all", "--out", str(tmp_path)]) == 0
    assert index.asked == ["1.0"]
    assert load((tmp_path / "vllm-1.0.json").read_text("utf-8")).requirements.torch == "==2.9.0"
    index.line = "no such distribution"
    monkeypatch.undo()
    monkeypatch.setattr(subprocess, "run", index)
    with pytest.raises(CannotCheck):
        build.released()
