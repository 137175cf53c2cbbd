"""Read a source in a process of its own, within bounds and without this one's environment.

A source comes from strangers, and a few lines of it can ask for all time or memory: one expression that matches for
ever, a file that makes a syntax tree of gigabytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from specfix.engines import readers
from specfix.engines.engine import Engine
from specfix.engines.serial import dump, load
from specfix.errors import CannotCheck

SECONDS = 120  # of the processor's time; a release takes about five
MEMORY = 4 << 30  # bytes of address space; a release takes half of one GiB
ANSWER = 32 << 20  # bytes of facts; a release has 300 KiB
_START = (
    "import json, sys; given = json.load(sys.stdin); sys.path[:] = given.pop('path');"
    " from specfix.engines.apart import answer; answer(**given)"
)


def read_engine(package: Path, source: str, version: str | None = None) -> Engine:
    """As :func:`specfix.engines.readers.read_engine`; CannotCheck also where the source asks for too much."""
    if os.name != "posix":  # there are no such bounds
        return readers.read_engine(package, source, version)
    given = {"package": str(package.absolute()), "source": source, "version": version, "memory": MEMORY}
    asked = json.dumps({**given, "seconds": SECONDS, "path": [str(Path(entry).absolute()) for entry in sys.path]})
    command = [sys.executable, "-IB", "-c", _START]  # -I: nothing is imported from where this was started
    environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "LANG") if name in os.environ}
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, env=environment, timeout=SECONDS * 5, check=False
        )
        told = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        raise CannotCheck(
            f"the source in {package} cannot be read within {SECONDS} s and {MEMORY >> 30} GiB of memory"
        ) from None
    if "error" in told:
        raise CannotCheck(told["error"])
    return load(told["facts"], source)


def answer(package: str, source: str, version: str | None, seconds: int, memory: int) -> None:
    """What the process prints: the facts, or why there are none."""
    import resource

    for kind, bound in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_FSIZE, 0)):
        with suppress(ValueError, OSError):  # a lower bound is set already, or the system has none of the kind
            resource.setrlimit(kind, (bound, bound))
    try:
        told: dict[str, Any] = {"facts": dump(readers.read_engine(Path(package), source, version))}
        if len(told["facts"]) > ANSWER:
            raise MemoryError
    except CannotCheck as error:
        told = {"error": str(error)}
    print(json.dumps(told))
