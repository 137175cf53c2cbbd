"""What vLLM's own config stage says of each pair.

    ENGINE_PYTHON -m tests.good_pairs.reference > tests/good_pairs/reference.jsonl

Run by the interpreter of vLLM 0.32.0's CPU build (`python tests/engine/engines.py 0.32.0`). It needs no tokenizer and
no weights: `EngineArgs(…).create_engine_config()` on folders with a config.json. A CPU build has no torchvision, which
the classes of vision models import: put it on PYTHONPATH (`pip install --no-deps --target FOLDER torchvision`; one
built for GPUs serves as well, as nothing of it is run). Each line: {"target", "draft", "method", "verdict", "why"},
the verdict "accepted", "refused", or "undecided" for want of torchvision.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from .corpus import Pair, pairs

UNREADABLE = "failed to be inspected"
ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "CRITICAL",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # what was inspected of a class is kept: not to be taken from, or left to, those who have other modules
        os.environ.update(ENVIRONMENT, VLLM_CACHE_ROOT=f"{folder}/cache")
        ask(Path(folder))


def ask(folder: Path) -> None:
    declare_operators()
    registry = importlib.import_module("vllm.model_executor.models.registry")
    # a class is inspected in a process of its own, seconds for each: here it is done without one
    vars(registry)["_run_in_subprocess"] = lambda function: function()
    # as on a GPU: without Triton there is no V2 runner, and dspark has no other; and a CPU switches some features off
    vars(importlib.import_module("vllm.config.vllm"))["HAS_TRITON"] = True
    platform = type(importlib.import_module("vllm.platforms").current_platform)
    platform.check_and_update_config = lambda *config: None
    for number, pair in enumerate(pairs()):
        with contextlib.redirect_stdout(sys.stderr):
            said = answer(pair, folder / str(number))
        print(json.dumps({"target": pair.target, "draft": pair.draft, "method": pair.method, **said}), flush=True)


def declare_operators() -> None:
    """Where torchvision's compiled half is not for this torch: what it asks of that half when it is imported."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = importlib.import_module("torch").library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        globals()["kept"] = library  # one that is collected takes its operators with it
    except ImportError:
        return


def answer(pair: Pair, folder: Path) -> dict[str, Any]:
    places = {}
    for side, config in (("target", pair.target_config), ("draft", pair.draft_config)):
        if config is None:
            continue
        places[side] = folder / side
        places[side].mkdir(parents=True)
        (places[side] / "config.json").write_text(json.dumps(config))
    draft = {"model": str(places["draft"])} if "draft" in places else {}
    arguments = importlib.import_module("vllm.engine.arg_utils").EngineArgs
    try:
        arguments(
            model=str(places["target"]),
            skip_tokenizer_init=True,
            dtype="bfloat16",
            max_model_len=pair.length,
            speculative_config={**pair.speculative, **draft},
        ).create_engine_config()
    except Exception as error:  # whatever the engine says of such a pair
        why = words(error).replace(str(folder), "")
        return {"verdict": "undecided" if UNREADABLE in why else "refused", "why": why}
    return {"verdict": "accepted"}


def words(error: Exception) -> str:
    """The engine's message, without what pydantic puts around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("For further information")] or [""]
    if "validation error" in lines[0]:
        del lines[0]
    for end in (" [type=", " Supported architectures"):
        lines = [line.split(end)[0] for line in lines]
    return f"{type(error).__name__}: {' '.join(lines[:2])}"[:200]


if __name__ == "__main__":
    main()
