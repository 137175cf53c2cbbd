"""The manifest: which patches are wanted, with their settings.

It is believed where it is the one that these very files were written with, whoever owns them: who can write the
manifest can write the code beside it, and in a container neither owner nor mode of a mounted file says anything.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA = "specfix/shim-v1"
MOST = 1 << 20  # bytes; every process of the engine reads it
PATH = Path(__file__).with_name("manifest.json")


class Unusable(Exception):
    """There is no manifest that belongs to this shim; the text says why."""


def read(path: Path = PATH) -> dict[str, dict[str, Any]]:
    """Patch -> settings. Raises Unusable."""
    try:
        text = _content(path)
        for name, digest in _digests(path):
            if hashlib.sha256(_content(path.with_name(name))).hexdigest() != digest:
                raise Unusable(f"manifest is not the one that this shim was written with, by its {name}: {path}")
    except (OSError, ValueError) as error:
        raise Unusable(f"manifest cannot be read: {error}") from None
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"manifest is not JSON: {error}") from None
    patches = manifest.get("patches") if isinstance(manifest, dict) and manifest.get("schema") == SCHEMA else None
    if not isinstance(patches, dict) or not all(isinstance(settings, dict) for settings in patches.values()):
        raise Unusable(f"manifest is not of schema {SCHEMA}: {path}")
    return patches


def others() -> Iterator[str]:
    """A line for each other shim on the path, of which Python loads nothing, since this one comes first."""
    ours = _content(PATH)
    for folder in dict.fromkeys(sys.path):
        path = Path(folder, PATH.parent.name, PATH.name)
        try:
            another = path.is_file() and _content(path) != ours
        except OSError:  # where we may not look Python finds nothing, either
            another = False
        if another:
            yield f"the one in {folder} is not loaded: {PATH.parent.parent} comes first"


def _digests(path: Path) -> list[tuple[str, str]]:
    """File beside the manifest -> SHA-256, as ``sha256sum --check`` reads it too."""
    listed = path.with_suffix(".sha256")
    lines = [line.split() for line in _content(listed).decode("ascii").splitlines()]
    digests = [(name, digest) for digest, name in lines]
    if path.name not in dict(digests):
        raise ValueError(f"{listed} does not list it")
    return digests


def _content(path: Path) -> bytes:
    """Of a file, and not of what would keep its reader waiting or fill the memory."""
    if path.is_file():
        with path.open("rb") as file:
            content = file.read(MOST + 1)
        if len(content) <= MOST:
            return content
    raise OSError(f"{path} is no file of at most {MOST} bytes")
