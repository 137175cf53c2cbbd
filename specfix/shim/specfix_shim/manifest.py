"""The manifest: which patches are wanted, with their settings."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

SCHEMA = "specfix/shim-v1"
MOST = 1 << 20  # bytes; every process of the engine reads it
PATH = Path(__file__).with_name("manifest.json")


class Unusable(Exception):
    """There is no manifest that belongs to this shim; the text says why."""


def read(path: Path = PATH) -> dict[str, dict[str, Any]]:
    """Patch -> settings."""
    try:
        if not path.is_file() or path.stat().st_size > MOST:
            raise Unusable(f"manifest cannot be read: {path} is no file of at most {MOST} bytes")
        text = path.read_bytes()
        digest = path.with_suffix(".sha256").read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise Unusable(f"manifest cannot be read: {error}") from None
    if hashlib.sha256(text).hexdigest() != digest:
        raise Unusable(f"manifest is not the one that this shim was written with: {path}")
    try:
        manifest = json.loads(text)
    except ValueError as error:
        raise Unusable(f"manifest is not JSON: {error}") from None
    patches = manifest.get("patches") if isinstance(manifest, dict) and manifest.get("schema") == SCHEMA else None
    if not isinstance(patches, dict) or not all(isinstance(settings, dict) for settings in patches.values()):
        raise Unusable(f"manifest is not of schema {SCHEMA}: {path}")
    return patches
