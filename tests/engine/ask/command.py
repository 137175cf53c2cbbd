"""What `vllm serve` makes of whole commands, by the engine's own word.

Reads from standard input one JSON list of commands, each a list of words; prints one JSON list: what each sets, by
destination, or null where the command is refused. What has no JSON form is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import sys
from typing import Any

SERVE: Any = importlib.import_module("serve")  # the script beside this one


def main() -> None:
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    given = json.load(sys.stdin)
    sys.argv = ["vllm", "serve"]
    whole, serve = SERVE.parsers()
    for action in serve._actions:
        action.default = argparse.SUPPRESS
    serve._defaults.clear()
    told = [read(whole, words) for words in given]
    print(json.dumps(told))


def read(whole: Any, words: list[str]) -> dict[str, Any] | None:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            found = vars(whole.parse_args(["serve", *words]))
        except (SystemExit, Exception):
            return None
    told = {}
    for name, value in found.items():
        with contextlib.suppress(TypeError, ValueError):
            told[name] = json.loads(json.dumps(SERVE.plain(value)))
    return told


if __name__ == "__main__":
    main()
