"""Raise in the shim, each time at another place and in a fork of this process; print what came of it as JSON.

    python run_faults.py lines FOLDER       at each line that is run
    python run_faults.py changes FOLDER     instead of the first change to vLLM, of the second, and so on

FOLDER holds the shim and a vLLM. Under "whole" is what comes of it where nothing is raised.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

using_vllm: Any = importlib.import_module("using_vllm")  # beside this file

Line = list[Any]  # file and number
# Where nothing can be raised: a step of the language that looks nothing up, and the calls of those two that see to it
# for all others. And what is the engine's own: its call, or the code that stands in its place.
CANNOT = re.compile(
    r"try:|(return|if|else|raise)( \w+)*:?|\w+ = None|if \w+ is not None:|\"\"\".*"
    r"|except \w+:|with guarded\(.*\):|say\(patch, line\)"
)
OWN = re.compile(
    r"(original|execute|hook|fallback)\(|self\.(released|func)\b|vars\(instance\)|_absent|AttributeError\("
)
KERNELS = "torch_kernels.py"


class Fault(BaseException):
    """Neither an Exception nor able to say what it is about."""

    def __str__(self) -> str:
        raise RuntimeError("no word")


class Tracer:
    """Raises at one line, the first time that it is reached, and lists all lines that are."""

    def __init__(self, folder: Path, fault: Line | None) -> None:
        self.folder = f"{folder / 'specfix_shim'}/"
        self.fault = fault
        self.seen: list[Line] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.folder):
            return None
        if event == "line" and frame.f_code.co_name != "<module>":
            line = [frame.f_code.co_filename.removeprefix(self.folder), frame.f_lineno]
            if line not in self.seen:
                self.seen.append(line)
                if line == self.fault:
                    sys.settrace(None)  # for frames to come, which takes most of the time
                    raise Fault
        return self


def at_line(folder: Path, fault: Line | None = None) -> dict[str, Any]:
    tracer = Tracer(folder, fault)
    sys.settrace(tracer)
    told: dict[str, Any] = using_vllm.observe()
    sys.settrace(None)
    return told | {"places": [line for line in tracer.seen if is_the_shims(folder, *line)]}


def is_the_shims(folder: Path, file: str, number: int) -> bool:
    """Whether something can be raised at a line that is not what the engine itself would have raised."""
    line = (folder / "specfix_shim" / file).read_text().splitlines()[number - 1].partition("  #")[0].strip()
    return file != KERNELS and not CANNOT.fullmatch(line) and not OWN.search(line)


def at_change(folder: Path, fault: int | None = None) -> dict[str, Any]:
    changes: Any = importlib.import_module("specfix_shim.changes")
    owners: list[str] = []

    def setattr(owner: Any, name: str, value: Any) -> None:
        owners.append(f"{getattr(owner, '__name__', owner)}.{name}")
        if len(owners) - 1 == fault:
            raise Fault
        builtins.setattr(owner, name, value)

    changes.setattr = setattr
    told: dict[str, Any] = using_vllm.observe()
    return told | {"places": list(range(len(owners)))}


def main() -> None:
    folder = Path(sys.argv[2])
    observed: Callable[..., Any] = at_change if sys.argv[1] == "changes" else at_line
    using_vllm.warm_up()
    whole = using_vllm.forked(using_vllm.compare) | using_vllm.forked(functools.partial(observed, folder))
    faults = [[place, using_vllm.forked(functools.partial(observed, folder, place))] for place in whole["places"]]
    print(json.dumps({"whole": whole, "faults": faults}))


if __name__ == "__main__":
    main()
