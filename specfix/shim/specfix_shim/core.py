"""Which patch waits for which module of vLLM, and how one is made so that nothing in it can end the process."""

from __future__ import annotations

import importlib
import logging
import threading
from types import ModuleType
from typing import Any

from . import hooks, manifest
from .log import guarded, say

# Only the CPU platform imports its runner, so patches that wait for it do nothing on any other.
_CPU = ("vllm.v1.worker.cpu_model_runner",)
_PROPOSERS = tuple(f"vllm.v1.spec_decode.{name}" for name in ("eagle", "dflash", "gemma4", "step3p5"))

WAITS_FOR: dict[str, tuple[str, ...]] = {
    "cpu_sampling": _CPU,
    "cpu_aux_setup": _CPU,
    "cpu_stand_ins": _CPU,
    "sorted_draft_layers": _PROPOSERS,
    "slot_block_size": _PROPOSERS[:1],
    "draft_positions": ("vllm.config",),
}

_once = threading.Lock()  # vLLM may call more than once in a process; taken by the first call, and kept
_armed = threading.Event()
_PATIENCE = 1  # seconds; the other may wait for something that this thread holds


def start() -> None:
    """Read the manifest and let each patch that it names wait for its modules. Who comes second waits until that is
    done: what was imported before would be missed."""
    if not _once.acquire(blocking=False):
        _armed.wait(_PATIENCE)
        return
    try:
        _arm()
    finally:
        _armed.set()


def _arm() -> None:
    try:
        patches = manifest.read()
    except manifest.Unusable as reason:
        say("", f"does nothing: {reason}", logging.WARNING)
        return
    for patch, settings in patches.items():
        if patch not in WAITS_FOR:
            say(patch, "did nothing: this shim has no such patch", logging.WARNING)
        for name in WAITS_FOR.get(patch, ()):
            with guarded(patch, "did nothing"):
                _wait(patch, settings, name)
    with guarded("", "whether there is another shim is not known"):
        for line in manifest.others():
            say("", line, logging.WARNING)


def _wait(patch: str, settings: dict[str, Any], name: str) -> None:
    """Once: a module that is imported again has the patched objects, or new ones that nobody uses."""

    def callback(module: ModuleType) -> None:
        apply(patch, module, settings)

    def missed() -> None:
        say(patch, f"did nothing: {name} was imported past the shim, by what stands before it", logging.WARNING)

    hooks.when_imported(name, callback, missed)


def apply(patch: str, module: Any, settings: dict[str, Any]) -> None:
    """Make one patch, the whole of it or nothing, now that its module is there; one line says what came of it."""
    with guarded(patch, "did nothing"):
        from . import changes  # it needs what a process of vLLM has imported by now, and others may not have

        planned, line = importlib.import_module(f".{patch}", __package__).plan(module, settings)
        changes.make(planned)
        if line:
            say(patch, line)
