"""A pair on disk, with the files that a real model has, and how it is fixed."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
OPTIONS: dict[str, Any] = {
    "method": "eagle3",
    "num_speculative_tokens": 5,
    "max_model_len": 8192,
    "engine": "vllm==0.26.0",
    "hardware": "h200",
}


def write_pair(folder: Path) -> tuple[Path, Path]:
    """The example's target and draft, with weights, a tokenizer, a subfolder, and links as the Hub's cache has."""
    sides = []
    for side, example in (("target", "llama-3.1-8b-instruct"), ("draft", "eagle3-llama-3.1-8b")):
        model = folder / side
        (model / "sub").mkdir(parents=True)
        (model / "config.json").write_bytes((EXAMPLES / example / "config.json").read_bytes())
        (model / "sub/notes.txt").write_text(side)
        (model / "tokenizer.model").write_bytes(b"t")
        blob = folder / "blobs" / side
        blob.parent.mkdir(exist_ok=True)
        blob.write_bytes(side.encode() * 100)
        (model / "pytorch_model.bin").symlink_to(f"../blobs/{side}")
        sides.append(model)
    return sides[0], sides[1]


def change(config: Path, **values: Any) -> None:
    """Set keys of a config.json."""
    config.write_text(json.dumps(json.loads(config.read_text("utf-8-sig")) | values, indent=2))


def state(folder: Path) -> dict[str, str]:
    """Every entry below ``folder``: a link's goal, or a digest of mode, time and content."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root) / name
            key = path.relative_to(folder).as_posix()
            if path.is_symlink():
                found[key] = f"-> {path.readlink()}"
            elif path.is_file():
                status = path.stat()
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                found[key] = f"{status.st_mode:o} {status.st_mtime_ns} {content}"
            else:
                found[key] = "folder"
    return found


def content(folder: Path) -> dict[str, bytes]:
    """What is in the files below ``folder``, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
