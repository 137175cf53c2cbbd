"""Makers of hostile files: each writes to the path that it is given."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TARGET, DRAFT = EXAMPLES / "llama-3.1-8b-instruct", EXAMPLES / "eagle3-llama-3.1-8b"
WHERE = ("--engine", "vllm==0.26.0", "--hardware", "h200")
HOW = ("--method", "eagle3", "--num-speculative-tokens", "5", "--max-model-len", "8192", *WHERE)
MEMORY = 420 << 20  # bytes of address space; a check of the examples takes 110 MiB less, and 40 MiB of them are real
DEEP = "[" * 100_000 + "]" * 100_000
INDEX = "model.safetensors.index.json"

Maker = Callable[[Path], object]


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    status: int
    out: str
    err: str


def bounded(*arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Said:
    """``specfix`` in a process of its own that may not take much memory, nor import from its working directory."""
    start = "import sys; del sys.path[0]; from specfix.__main__ import main; sys.exit(main())"

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    done = subprocess.run(
        [sys.executable, "-c", start, *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        preexec_fn=bound,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        timeout=60,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def refused(said: Said, *named: str) -> None:
    """Assert that this was refused in one line that says these words."""
    assert said.status == 2 and said.out == "", said
    assert said.err.startswith("specfix: error: ") and said.err.count("\n") == 1 and len(said.err) < 2_200, said.err
    assert "is a bug of specfix" not in said.err
    for each in named:
        assert each in said.err, (each, said.err)


def model(folder: Path, files: Mapping[str, Maker | bytes], of: Path = DRAFT) -> str:
    """A folder with the config of an example and these files, one of which may be another config."""
    folder.mkdir(parents=True)
    for name, made in {"config.json": (of / "config.json").read_bytes(), **files}.items():
        if isinstance(made, bytes):
            (folder / name).write_bytes(made)
        else:
            made(folder / name)
    return str(folder)


def config(**changes: Any) -> bytes:
    return json.dumps({**json.loads((DRAFT / "config.json").read_text()), **changes}).encode()


def config_with(text: str) -> bytes:
    """The draft's config with one more member, as it is written, in the place of its own."""
    values = json.loads((DRAFT / "config.json").read_text())
    values.pop(text.split('"')[1], None)
    return json.dumps(values)[:-1].encode() + b"," + text.encode() + b"}"


def sparse(size: int) -> Maker:
    """A file of zeros that takes no place."""

    def make(path: Path) -> None:
        with path.open("wb") as file:
            file.truncate(size)

    return make


def link(to: str) -> Maker:
    return lambda path: path.symlink_to(to)


def folder(path: Path) -> None:
    path.mkdir()


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def listening(path: Path) -> None:
    """A socket; its own path may be longer than an address."""
    with socket.socket(socket.AF_UNIX) as made:
        before = Path.cwd()
        os.chdir(path.parent)
        try:
            made.bind(path.name)
        finally:
            os.chdir(before)


# what is no file to read, and would block, or never end
NO_FILES: dict[str, Maker] = {
    "pipe": os.mkfifo,
    "socket": listening,
    "device": link("/dev/zero"),
    "folder": folder,
    "loop": loop,
}


def tensors(described: Any, data: int = 0) -> bytes:
    """A safetensors file whose header is this."""
    header = described if isinstance(described, bytes) else json.dumps(described).encode()
    return len(header).to_bytes(8, "little") + header + bytes(data)


def tensor(dtype: Any = "BF16", shape: Any = (2, 2), begin: Any = 0, end: Any = 8) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def laughs(merges: bool = False) -> str:
    """YAML anchors that stand for ten thousand million values."""
    lines = ["l0: &l0 {x: 1}"]
    for level in range(1, 10):
        inside = ", ".join([f"*l{level - 1}"] * 10)
        lines.append(f"l{level}: &l{level} {{<<: [{inside}]}}" if merges else f"l{level}: &l{level} [{inside}]")
    return "\n".join(lines) + "\n"


def speculative(**more: Any) -> str:
    return json.dumps({"method": "eagle3", "model": str(DRAFT), "num_speculative_tokens": 5, **more})


def serve_yaml(more: str = "") -> str:
    return f"model: {TARGET}\nmax-model-len: 8192\nspeculative-config: '{speculative()}'\n{more}"


def script(more: str = "", before: str = "") -> str:
    return f"{before}vllm serve {TARGET} --max-model-len 8192 --speculative-config '{speculative()}' {more}\n"


def compose(more: str) -> str:
    return (
        f"services:\n  llm:\n    image: vllm/vllm-openai:v0.26.0\n    volumes: ['{EXAMPLES}:{EXAMPLES}']\n"
        f"    command: [--model, {TARGET}, --speculative-config, '{speculative()}']\n    {more}\n"
    )
