"""A check of local files starts in milliseconds: nothing heavy is imported on the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .samples import EAGLE3, LLAMA, TENSORS, write_model

SCRIPT = """
import sys
from specfix.deployment.load import load_deployment
load_deployment(sys.argv[1], sys.argv[2])
heavy = {"huggingface_hub", "pydantic", "torch", "transformers", "requests", "httpx", "yaml", "rich", "typer"}
print(*sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""


def test_local_files_need_nothing_heavy(tmp_path: Path) -> None:
    target = write_model(tmp_path / "target", LLAMA)
    draft = write_model(tmp_path / "draft", EAGLE3, TENSORS)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, target, draft],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout == "\n"
