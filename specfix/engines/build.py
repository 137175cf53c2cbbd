"""Make the shipped facts: ``python -m specfix.engines.build``.

Takes each release's official wheel from the package index, reads its source, and writes one file a release.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from specfix.engines.engine import SECTIONS, Engine
from specfix.engines.find import DATA, NAME, SHIPPED, shipped_versions
from specfix.engines.readers import read_engine
from specfix.engines.serial import as_json, dump, load
from specfix.engines.source.tree import MAX_FILE

# those that vLLM has had wheels for; pip takes the first that a release has
PLATFORMS = tuple(f"manylinux{name}_x86_64" for name in ("_2_35", "_2_34", "_2_31", "_2_28", "_2_24", "2014", "1"))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m specfix.engines.build", description="Make the shipped engine facts."
    )
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="releases; by default those shipped now")
    parser.add_argument(
        "--from", dest="sources", type=Path, help="folder with VERSION/vllm, instead of the package index"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file would change")
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write to")
    given = parser.parse_args(arguments)
    differs = False
    for version in given.versions or shipped_versions():
        with _source(version, given.sources) as package:
            engine = read_engine(package, SHIPPED, version)
        text = dump(engine)
        for section in SECTIONS:  # what is written must be what the types say
            made = getattr(load(text), section)
            TypeAdapter(type(made)).validate_python(asdict(made))
        file = given.out / f"{NAME}-{version}.json"
        if given.check:
            changed = _differences(file, engine)
            differs = differs or bool(changed)
            print(f"{NAME} {version}: {', '.join(changed) or 'as shipped'}")
        else:
            file.write_text(text, "utf-8")
            print(
                f"{file}: {len(text) / 1024:.0f} KiB"
                + "".join(f"\n  unknown {k}: {v}" for k, v in engine.unknown.items())
            )
    return int(differs)


def _differences(file: Path, engine: Engine) -> list[str]:
    """Dotted names of the facts that differ from the shipped file."""
    try:
        old = as_json(load(file.read_text("utf-8")))
    except (OSError, ValueError) as error:
        return [f"no usable {file} ({error})"]
    new = as_json(engine)
    return [
        f"{section}.{fact}" if isinstance(content, dict) else section
        for section, content in new.items()
        for fact in (sorted({*content, *old[section]}) if isinstance(content, dict) else [""])
        if (content.get(fact) != old[section].get(fact) if isinstance(content, dict) else content != old[section])
    ]


@contextmanager
def _source(version: str, sources: Path | None) -> Iterator[Path]:
    """The package folder of a release."""
    if sources is not None:
        yield sources / version / NAME
        return
    with tempfile.TemporaryDirectory(prefix="specfix-") as folder:
        _unpack(_download(version, Path(folder)), Path(folder))
        yield Path(folder) / NAME


def _download(version: str, folder: Path) -> Path:
    platforms = [option for platform in PLATFORMS for option in ("--platform", platform)]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        *platforms,
    ]
    subprocess.run([*command, "--dest", str(folder), f"{NAME}=={version}"], check=True)
    return next(folder.glob("*.whl"))


def _unpack(wheel: Path, folder: Path) -> None:
    """Only the package's Python files: a wheel is half a gigabyte of kernels."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if entry.filename.startswith(f"{NAME}/") and entry.filename.endswith(".py") and entry.file_size <= MAX_FILE:
                archive.extract(entry, folder)


if __name__ == "__main__":
    sys.exit(main())
