"""Observe each variant of a folder, in a fork of this process each; print what came of it as JSON.

    python run_odd.py VARIANTS.json FOLDER       FOLDER holds a shim and a vLLM

A variant is a name, and the text of each file of the folder that is another in it; null where it is missing.
"""

from __future__ import annotations

import compileall
import functools
import importlib
import json
import sys
from pathlib import Path
from typing import Any

using_vllm: Any = importlib.import_module("using_vllm")  # beside this file


def main() -> None:
    variants, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    using_vllm.warm_up()
    compileall.compile_dir(folder, quiet=2)
    sys.dont_write_bytecode = True  # a module that changes within a second would be taken from its bytecode
    told: dict[str, Any] = {"as it is": using_vllm.forked(using_vllm.compare)}
    for what, files in variants:
        released = {folder / file: (folder / file).read_bytes() for file in files}
        for path, text in zip(released, files.values(), strict=True):
            path.unlink() if text is None else path.write_text(text)
        told[what] = using_vllm.forked(functools.partial(using_vllm.compare, len(told) % 2 == 1))
        for path, content in released.items():
            path.write_bytes(content)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
