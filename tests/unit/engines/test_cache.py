"""The cache of what was read on the spot: by contents, and never in the way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from specfix.engines import Engine, cache
from specfix.engines.apart import read_engine
from specfix.engines.cache import read_cached

Make = Callable[..., Path]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> list[Path]:
    """The packages that were really read."""
    done: list[Path] = []

    def read(package: Path, source: str, version: str | None) -> Engine:
        done.append(package)
        return read_engine(package, source, version)

    monkeypatch.setattr(cache, "read_engine", read)
    return done


def test_the_same_contents_are_read_once_wherever_they_are(make: Make, reads: list[Path], tmp_path: Path) -> None:
    package = make(metadata="0.25.1")
    first = read_cached(package, "here", "0.25.1")
    assert read_cached(package, "here", "0.25.1") == first
    shutil.copytree(package.parent, tmp_path / "copy")
    for path in (tmp_path / "copy").rglob("*"):
        os.utime(path, (1, 1))
    there = read_cached(tmp_path / "copy/vllm", "there", "0.25.1")
    assert (there.source, there.runner, there.unknown) == ("there", first.runner, first.unknown)
    assert reads == [package]


@pytest.mark.parametrize("settled", [True, False])
def test_a_changed_byte_is_read_again(
    make: Make, reads: list[Path], monkeypatch: pytest.MonkeyPatch, settled: bool
) -> None:
    if settled:  # as if all had been changed long ago, so that a look at the files' times does
        monkeypatch.setattr(cache, "SETTLING", -(10**12))
    package = make(metadata="0.25.1")
    file = package / "envs.py"
    file.write_text("A = 1")
    at = file.stat()
    read_cached(package, "x")
    read_cached(package, "x")
    file.write_text("A = 2")
    os.utime(file, ns=(at.st_atime_ns, at.st_mtime_ns))  # as some tools set it back
    read_cached(package, "x")
    (package / "extra.py").touch()
    read_cached(package, "x")
    (package.parent / "vllm-0.25.1.dist-info/METADATA").write_text("Version: 0.25.1\nRequires-Dist: torch\n")
    read_cached(package, "x")
    read_cached(package, "x", "0.25.2")
    assert len(reads) == 5


@pytest.mark.parametrize("damage", [lambda whole: b"", lambda whole: whole[:-1], lambda whole: b"\xff" + whole])
def test_a_damaged_entry_is_made_again(
    make: Make, reads: list[Path], own_cache: Path, damage: Callable[[bytes], bytes]
) -> None:
    package = make()
    first = read_cached(package, "x")
    for count in (2, 2):
        for entry in own_cache.iterdir():
            entry.write_bytes(damage(entry.read_bytes())) if len(reads) < count else None
        assert read_cached(package, "x") == first
        assert len(reads) == count


def test_one_altered_byte_in_a_section_is_seen(make: Make, reads: list[Path], own_cache: Path) -> None:
    package = make()
    first = read_cached(package, "x")
    facts = next(own_cache.glob("*.facts"))
    altered = facts.read_text("utf-8").replace('"unknown version"', '"another version"')
    assert altered != facts.read_text("utf-8")
    facts.write_text(altered, "utf-8")
    assert read_cached(package, "x") == first
    assert len(reads) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_folder_without_permission_is_done_without(make: Make, reads: list[Path], own_cache: Path, mode: int) -> None:
    package = make()
    own_cache.mkdir(parents=True)
    own_cache.chmod(mode)
    try:
        assert read_cached(package, "x").name == "vllm"
    finally:
        own_cache.chmod(0o700)


def test_a_folder_that_cannot_be_is_done_without(
    make: Make, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make()
    monkeypatch.setenv("XDG_CACHE_HOME", str(package / "__init__.py"))
    assert read_cached(package, "x") == read_cached(package, "x")
    assert len(reads) == 2


def test_two_at_once_leave_one_whole_entry(make: Make, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make()

    def read(package: Path, source: str, version: str | None) -> Engine:
        if not list(own_cache.glob("*.facts")):  # while this one reads, another process has come to the end
            monkeypatch.setattr(cache, "read_engine", read_engine)
            read_cached(package, source, version)
        return read_engine(package, source, version)

    monkeypatch.setattr(cache, "read_engine", read)
    first = read_cached(package, "x")
    assert len(list(own_cache.glob("*.facts"))) == 1 and not list(own_cache.glob("*.tmp"))
    monkeypatch.setattr(cache, "read_engine", lambda *_: pytest.fail("read again"))
    assert read_cached(package, "x") == first


def test_the_folder_does_not_grow_without_end(make: Make, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ENTRIES", 4)
    package = make()
    read_cached(package, "x", "used")
    used = next(own_cache.glob("*.facts"))
    for number in range(6):
        for age, file in enumerate(sorted(own_cache.iterdir(), key=lambda file: file != used)):
            os.utime(file, (1000 + age, 1000 + age))  # the used one is the oldest
        read_cached(package, "x", "used")
        read_cached(package, "x", str(number))
    assert len(list(own_cache.iterdir())) <= 4 and used.exists()
