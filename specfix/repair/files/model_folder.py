"""A model's folder with another config.json: every other file is linked, or copied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from specfix.deployment import Model
from specfix.errors import CannotCheck
from specfix.repair.files.entry import Copy, Entry, File, Folder, Link
from specfix.repair.launch import Place

CONFIG = "config.json"
NOT_THE_MODEL = frozenset({CONFIG, ".git", ".cache"})  # what git and the Hub's client keep there
BOM = b"\xef\xbb\xbf"


def model_folder(before: Model, after: Model, place: Place, copy: bool) -> Folder:
    """The repaired model: of one on the Hub the config alone, since launch.sh links the rest. Raises CannotCheck."""
    config = {CONFIG: File(config_bytes(before, place) + after.config.text.encode())}
    if place.folder is None:
        return config
    return {**config, **dict(others(place.folder, copy))}


def config_bytes(model: Model, place: Place) -> bytes:
    """The byte order mark of the config that was read, or nothing. It must still be what was read."""
    if place.folder is None:
        return b""
    file = place.folder / CONFIG
    data = file.read_bytes()
    start = BOM if data.startswith(BOM) else b""
    if data[len(start) :] != model.config.text.encode():
        raise CannotCheck(f"{file} has changed since it was read: try again")
    return start


def others(folder: Path, copy: bool) -> Iterator[tuple[str, Entry]]:
    """Every other entry of a model's folder. A link there is linked to as it is, wherever it leads."""
    for path in sorted(folder.iterdir()):
        if path.name in NOT_THE_MODEL:
            continue
        if not copy:
            yield path.name, Link(path)
        else:
            yield from copies(path, path.name, ())


def copies(path: Path, name: str, above: tuple[Path, ...]) -> Iterator[tuple[str, Entry]]:
    """A file, or all files below a folder; links are followed."""
    if path.is_file():
        yield name, Copy(path)
    elif path.is_dir():
        real = path.resolve()
        if real in above:
            raise CannotCheck(f"{path} links to a folder that it lies in: it cannot be copied")
        for inner in sorted(path.iterdir()):
            yield from copies(inner, f"{name}/{inner.name}", (*above, real))
    else:
        raise CannotCheck(f"{path} cannot be copied: it is a link to nowhere, or no regular file")
