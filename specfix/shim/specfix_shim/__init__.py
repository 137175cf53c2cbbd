"""Repairs of vLLM's speculative decoding, applied inside its processes: only those that manifest.json names.

``activate`` is a vLLM general plugin. vLLM calls it in each of its processes, ``vllm serve --help`` included, and an
exception from it would end that process. Nothing of vLLM or torch is imported here; a patch is made when vLLM itself
has imported what it changes. ``python -m specfix_shim status`` tells what that would be.
"""

from __future__ import annotations


def activate() -> None:
    """Arm the patches. May be called any number of times; never raises."""
    try:
        from . import core

        core.start()
    except (KeyboardInterrupt, SystemExit):  # how a signal ends the process: nothing of ours
        raise
    except BaseException as error:
        _tell(error)


def _tell(error: BaseException) -> None:
    """By logging alone: the module that has a word for it may be what is broken."""
    try:
        import logging

        logging.getLogger("vllm.plugins.specfix_shim").warning("specfix shim: not active: %r", error)
    except Exception:
        pass  # nobody listens
