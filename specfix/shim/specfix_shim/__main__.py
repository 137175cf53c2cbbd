"""``python -m specfix_shim status [--import]``: what the shim would do here, and with --import what it does.

Without --import vLLM is looked for and not imported. With it, vLLM's modules that patches wait for are imported in this
process, with the shim active, and the lines that a server would log are printed.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib import metadata
from pathlib import Path

from . import activate, core, hooks, log, manifest

PLUGIN = "specfix_shim"


def main(arguments: list[str]) -> int:
    if arguments not in (["status"], ["status", "--import"]):
        print("usage: python -m specfix_shim status [--import]", file=sys.stderr)
        return 2
    try:
        patches = manifest.read()
    except manifest.Unusable as reason:
        print(f"does nothing: {reason}")
        return 1
    print(f"manifest {manifest.PATH}: {', '.join(patches) or 'no patches'}")
    for line in manifest.others():
        print(f"specfix shim: {line}")
    loaded = _print_plugin()
    vllm = _vllm()
    print(f"vLLM {vllm or 'not found'}")
    if vllm is None:
        return 1
    if "--import" in arguments:
        return 0 if _import(patches) and loaded else 1
    for patch in patches:
        names = [name for name in core.WAITS_FOR.get(patch, ()) if _has(vllm, name)]
        print(f"{patch}: waits for {', '.join(names)}" if names else f"{patch}: nothing here that it could change")
    return 0 if loaded else 1


def _print_plugin() -> bool:
    """Whether vLLM would load the plugin."""
    points = metadata.entry_points()
    group = (
        points.select(group="vllm.general_plugins")
        if hasattr(points, "select")
        else points.get("vllm.general_plugins", ())
    )
    found = any(point.name == PLUGIN for point in group)
    print(f"plugin {'found by its entry point' if found else 'not found: its folder is not on PYTHONPATH'}")
    allowed = os.environ.get("VLLM_PLUGINS")
    if allowed is not None and PLUGIN not in allowed.split(","):
        print(f"VLLM_PLUGINS does not name {PLUGIN}, so that vLLM will not load it: {allowed!r}")
        return False
    return found


def _vllm() -> Path | None:
    spec = importlib.util.find_spec("vllm")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _has(vllm: Path, name: str) -> bool:
    path = vllm.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def _import(patches: dict[str, dict[str, object]]) -> bool:
    activate()
    fine = True
    for name in dict.fromkeys(name for patch in patches for name in core.WAITS_FOR.get(patch, ())):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            print(f"{name}: not here ({error})")
        except Exception as error:
            fine = False
            print(f"{name}: cannot be imported: {type(error).__name__}: {error}")
    hooks.tell_missed()
    for line in log.said:
        print(line)
    for patch in patches:
        if not any(line.startswith(f"{patch}:") for line in log.said):
            print(f"{patch}: nothing to tell yet")
    return fine


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
