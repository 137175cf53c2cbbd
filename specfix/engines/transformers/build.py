"""Make the shipped classes of Transformers: ``python -m specfix.engines.transformers.build [VERSION…]``.

Takes the official wheels from the package index, reads their source, and writes the two data files, of config classes
and of the names of model classes. A version takes the place of the one known of its minor; without any, all known are
read again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from specfix.engines.build import download
from specfix.engines.source.tree import MAX_FILE
from specfix.engines.transformers import models
from specfix.engines.transformers.lookup import DATA, SCHEMA, State, difference, known_states, same
from specfix.engines.transformers.read import PACKAGE, read_classes, read_models


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m specfix.engines.transformers.build", description="Make the shipped classes of Transformers."
    )
    parser.add_argument(
        "versions", nargs="*", metavar="VERSION", help="releases of Transformers; by default those known"
    )
    parser.add_argument(
        "--from", dest="sources", type=Path, help="folder with VERSION/transformers, instead of the package index"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a class would change")
    parser.add_argument("--out", type=Path, default=DATA, help="file to write; models.txt beside it")
    given = parser.parse_args(arguments)
    releases, states = known_states(given.out) if given.out.exists() else ({}, {})
    names_file = given.out.with_name(models.DATA.name)
    names = models.known_names(names_file.read_text("utf-8")) if names_file.exists() else {}
    wanted = given.versions or list(releases.values())
    with ProcessPoolExecutor() as pool:
        read = dict(zip(wanted, pool.map(partial(_read, sources=given.sources), wanted), strict=True))
    if given.check:
        return _check(read, states, names)
    for version, (classes, of_models) in read.items():
        minor = _minor(version)
        releases[minor], states[minor], names[minor] = version, classes, of_models
    order = sorted(states, key=lambda minor: [int(number) for number in minor.split(".")])
    text = as_text({minor: releases[minor] for minor in order}, {minor: states[minor] for minor in order})
    given.out.write_text(text, "utf-8")
    names_text = models.as_text({m: releases[m] for m in order}, {m: names.get(m, set()) for m in order})
    names_file.write_text(names_text, "utf-8")
    print(f"{given.out}: {len(text) / 1024:.0f} KiB, {order[0]} to {order[-1]}")
    return 0


def as_text(releases: Mapping[str, str], states: Mapping[str, Mapping[str, State]]) -> str:
    """The data file: a head, and a line for each name with its history (see ``lookup``)."""
    lines = [json.dumps({"schema": SCHEMA, "minors": releases})]
    for name in sorted({name for classes in states.values() for name in classes}):
        history: list[tuple[str, object]] = []
        before: State | None = None
        for minor, classes in states.items():
            now = classes.get(name)
            if now is None:
                change: object = None if before is not None else {}
            else:
                change = difference(before or {}, now)
            if change != {}:
                history.append((minor, change))
            before = now
        lines.append(f"{name}\t{json.dumps(history, sort_keys=True, ensure_ascii=False, separators=(',', ':'))}")
    return "\n".join(lines) + "\n"


def _check(
    read: Mapping[str, tuple[Mapping[str, State], set[str]]],
    states: Mapping[str, Mapping[str, State]],
    names: Mapping[str, set[str]],
) -> int:
    differs = False
    for version, (classes, of_models) in read.items():
        shipped = states.get(_minor(version), {})
        changed = [name for name in sorted({*classes, *shipped}) if not same(classes.get(name), shipped.get(name))]
        changed += sorted(of_models ^ names.get(_minor(version), set()))
        differs = differs or bool(changed)
        print(f"{PACKAGE} {version}: {', '.join(changed) or 'as shipped'}")
    return int(differs)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _read(version: str, sources: Path | None) -> tuple[dict[str, State], set[str]]:
    with _source(version, sources) as package:
        return read_classes(package), read_models(package)


@contextmanager
def _source(version: str, sources: Path | None) -> Iterator[Path]:
    """The package folder of a release."""
    if sources is not None:
        yield sources / version / PACKAGE
        return
    with tempfile.TemporaryDirectory(prefix="specfix-") as name:
        folder = Path(name)
        with zipfile.ZipFile(download(f"{PACKAGE}=={version}", folder)) as archive:
            for entry in archive.infolist():
                python = entry.filename.startswith(f"{PACKAGE}/") and entry.filename.endswith(".py")
                if python and entry.file_size <= MAX_FILE:
                    archive.extract(entry, folder)
        yield folder / PACKAGE


if __name__ == "__main__":
    sys.exit(main())
