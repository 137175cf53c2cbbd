"""A repair shim that the server will load from its PYTHONPATH, and whether VLLM_PLUGINS lets it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specfix.deployment.json_text import CONFIG_LIMIT, read_bytes, read_json_object
from specfix.errors import CannotCheck, MissingFact
from specfix.record import record

PLUGIN = "specfix_shim"
PATH, PLUGINS = "PYTHONPATH", "VLLM_PLUGINS"
KEPT = f"${{{PATH}:+:${PATH}}}"  # in a shell: what it held before, behind what comes first now


@record(frozen=True)
class Shim:
    """``patches`` by name, each with its settings, as the manifest in ``folder`` lists them; ``enabled``: VLLM_PLUGINS
    is not set, or names the shim among others."""

    folder: str
    patches: Mapping[str, Any]
    enabled: bool = True


def find_shim(env: Mapping[str, str]) -> Shim | MissingFact | None:
    """The shim in the first folder of PYTHONPATH that holds one. A folder that is not here may hold one, for the server
    may well run elsewhere: where VLLM_PLUGINS is set, that is a missing fact. Raises CannotCheck for a bad manifest.
    """
    absent = None
    for folder in filter(None, env.get(PATH, "").removesuffix(KEPT).split(":")):
        manifest = Path(folder) / PLUGIN / "manifest.json"
        try:
            if (
                manifest.is_file() or manifest.with_name("__init__.py").is_file()
            ):  # Python imports this one, and no other
                refuse_broken(manifest)
                return Shim(folder, patches(manifest), allowed(env.get(PLUGINS)))
            if not Path(folder).exists():
                absent = absent or MissingFact(f"whether {folder} on {PATH} holds a shim: it is not here")
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            absent = absent or MissingFact(
                f"whether {folder} on {PATH} holds a shim: {getattr(error, 'strerror', None) or error}"
            )
    return absent if PLUGINS in env else None


def refuse_broken(manifest: Path) -> None:
    """Raise CannotCheck for a shim that the engine will not run: changed after it was written, or not whole."""
    folder = manifest.parent.parent
    points = map(content, folder.glob(f"{PLUGIN}-*.dist-info/entry_points.txt"))
    named = any(PLUGIN.encode() in text for text in points)
    if not whole(manifest) or not named or not manifest.with_name("__init__.py").is_file():
        raise CannotCheck(
            f"{PATH} names {folder}, and the engine will not run the shim there: it is not whole, or its manifest was "
            "changed; write it anew with `specfix fix`"
        )


def whole(manifest: Path) -> bool:
    """Whether the manifest, and the code beside it, are those that the digests there are of."""
    lines = [line.split() for line in content(manifest.with_suffix(".sha256")).decode("ascii", "replace").splitlines()]
    digests = {Path(line[1]).name: line[0] for line in lines if len(line) == 2}
    return manifest.name in digests and all(
        hashlib.sha256(content(manifest.with_name(name))).hexdigest() == digest for name, digest in digests.items()
    )


def content(file: Path) -> bytes:
    """The start of a file of the shim; nothing where it cannot be read."""
    try:
        return read_bytes(file, str(file), CONFIG_LIMIT)
    except CannotCheck:
        return b""


def patches(manifest: Path) -> Mapping[str, Any]:
    """The patches that a manifest lists."""
    found = read_json_object(manifest, str(manifest))[0].get("patches")
    if not isinstance(found, dict):
        raise CannotCheck(f"{manifest} lists no patches: write the shim anew with `specfix fix`")
    return found


def allowed(plugins: str | None) -> bool:
    """Whether a VLLM_PLUGINS lets the shim be loaded: vLLM compares whole names, and forgives no blank."""
    return plugins is None or PLUGIN in plugins.split(",")


def allowing(plugins: str) -> str:
    """A VLLM_PLUGINS that names the shim too."""
    return plugins if allowed(plugins) else f"{plugins},{PLUGIN}".removeprefix(",")
