"""Make the shipped facts: ``python -m specfix.engines.build``.

Takes each release's official wheel from the package index, reads its source, and writes one file a release.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from packaging.version import Version
from pydantic import TypeAdapter

from specfix.engines.engine import SECTIONS, Engine
from specfix.engines.find import DATA, SHIPPED, shipped_versions
from specfix.engines.place import NAME
from specfix.engines.readers import read_engine
from specfix.engines.serial import as_json, dump, load
from specfix.engines.wheel import Wheel
from specfix.errors import CannotCheck

OLDEST = "0.10.0"  # the first release that is read
PROCESSES = 2
# those that vLLM has had wheels for; pip takes the first that a release has
PLATFORMS = tuple(f"manylinux{name}_x86_64" for name in ("_2_35", "_2_34", "_2_31", "_2_28", "_2_24", "2014", "1"))
PYTHON = "3.12"  # that each release has a wheel for


@dataclass(frozen=True, slots=True)
class _Job:
    """What is done with each release."""

    sources: Path | None
    out: Path
    check: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 where a release could not be read (its file stays as it was) or, with --check, a file would change."""
    parser = argparse.ArgumentParser(
        prog="python -m specfix.engines.build", description="Make the shipped engine facts."
    )
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="releases; by default those shipped now")
    parser.add_argument("--all", action="store_true", help=f"all releases of the package index from {OLDEST} on")
    parser.add_argument(
        "--from", dest="sources", type=Path, help="folder with VERSION/vllm, instead of the package index's wheels"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file would change")
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write to")
    given = parser.parse_args(arguments)
    if given.all and given.versions:
        parser.error("either releases or --all")
    versions = released() if given.all else given.versions or shipped_versions()
    work = partial(_make, _Job(given.sources, given.out, given.check))
    good = True
    for well, text in map(work, versions) if len(versions) == 1 else _in_parallel(work, versions):
        good = good and well
        print(text, flush=True)
    return int(not good)


def released() -> list[str]:
    """The releases that the package index knows, from the first that is read on. CannotCheck where it does not say."""
    command = [sys.executable, "-m", "pip", "index", "versions", NAME, "--ignore-requires-python"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    line = re.search(r"^Available versions: (.+)$", answer, re.MULTILINE)
    if line is None:
        raise CannotCheck(f"{' '.join(command[1:])} names no releases")
    return sorted((v for v in line[1].split(", ") if Version(v) >= Version(OLDEST)), key=Version)


def _in_parallel(work: partial[tuple[bool, str]], versions: Sequence[str]) -> Iterator[tuple[bool, str]]:
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(work, versions)


def _make(job: _Job, version: str) -> tuple[bool, str]:
    """Whether all went well with a release, and what to say of it."""
    file = job.out / f"{NAME}-{version}.json"
    try:
        with _source(version, job.sources) as package:
            engine = read_engine(package, SHIPPED, version)
        text = dump(engine)
        for section in SECTIONS:  # what is written must be what the types say
            made = getattr(load(text), section)
            TypeAdapter(type(made)).validate_python(asdict(made))
    except Exception as error:  # a reader that stumbles over one release must not cost the others
        return False, f"{NAME} {version}: not read: {type(error).__name__}: {error}"
    if job.check:
        changed = _differences(file, engine)
        return not changed, f"{NAME} {version}: {', '.join(changed) or 'as shipped'}"
    file.write_text(text, "utf-8")
    unknown = "".join(f"\n  unknown {fact}: {reason}" for fact, reason in engine.unknown.items())
    return True, f"{file}: {len(text) / 1024:.0f} KiB{unknown}"


def _differences(file: Path, engine: Engine) -> list[str]:
    """Dotted names of the facts, or of the entries of facts, that differ from the shipped file."""
    try:
        old = as_json(load(file.read_text("utf-8")))
    except (OSError, ValueError, CannotCheck) as error:
        return [f"no usable {file} ({error})"]
    return sorted(_different(as_json(engine), old, ()))


def _different(new: Any, old: Any, path: tuple[str, ...]) -> Iterator[str]:
    if new == old:
        return
    if isinstance(new, Mapping) and isinstance(old, Mapping) and len(path) < len(("section", "fact", "entry")):
        for name in {*new, *old}:
            yield from _different(new.get(name, ...), old.get(name, ...), (*path, name))
    else:
        yield ".".join(path)


@contextmanager
def _source(version: str, sources: Path | None) -> Iterator[Path]:
    """The package folder of a release, with its metadata beside it."""
    if sources is not None:
        yield sources / version / NAME
        return
    with tempfile.TemporaryDirectory(prefix="specfix-") as folder:
        platforms = [option for platform in PLATFORMS for option in ("--platform", platform)]
        wheel = download(f"{NAME}=={version}", Path(folder), ["--python-version", PYTHON, *platforms])
        Wheel(wheel).unpack(Path(folder))
        wheel.unlink()  # half a gigabyte of kernels
        yield Path(folder) / NAME


def download(requirement: str, folder: Path, options: Sequence[str] = ()) -> Path:
    """The wheel of a release (``vllm==0.26.0``), in ``folder``."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *options]
    subprocess.run([*command, "--dest", str(folder), requirement], check=True)
    return next(folder.glob("*.whl"))


if __name__ == "__main__":
    sys.exit(main())
