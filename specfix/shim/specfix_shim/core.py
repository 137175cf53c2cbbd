"""Which patch waits for which module of vLLM, and how one is run so that nothing it does can end the process."""

from __future__ import annotations

import functools
import importlib
import logging
from types import ModuleType
from typing import Any

from . import hooks, manifest
from .log import Inert, say

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


@functools.cache  # vLLM may call more than once in a process
def start() -> None:
    """Read the manifest and let each patch that it names wait for its modules."""
    try:
        patches = manifest.read()
    except manifest.Unusable as reason:
        say("", f"does nothing: {reason}", logging.WARNING)
        return
    for patch, settings in patches.items():
        if patch not in WAITS_FOR:
            say(patch, "did nothing: this shim has no such patch", logging.WARNING)
        for name in WAITS_FOR.get(patch, ()):
            _wait(patch, settings, name)


def _wait(patch: str, settings: dict[str, Any], name: str) -> None:
    done = False

    def callback(module: ModuleType) -> None:
        nonlocal done
        if not done:  # a module that is imported again has the patched objects, or new ones that nobody uses
            done = True
            apply(patch, module, settings)

    hooks.when_imported(name, callback)


def apply(patch: str, module: Any, settings: dict[str, Any]) -> None:
    """Make one patch now that its module is there, and say in one line what came of it. Never raises."""
    try:
        did = importlib.import_module(f".{patch}", __package__).apply(module, settings)
        if did:
            say(patch, did)
    except Inert as reason:
        say(patch, f"did nothing: {reason}")
    except Exception as error:
        say(patch, f"did nothing: {type(error).__name__}: {error}", logging.WARNING)
