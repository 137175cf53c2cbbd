"""The files of one model that are read, in a folder of whatever kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from specfix.deployment.config import Config
from specfix.deployment.headers import read_tensors
from specfix.deployment.json_text import once, read_json_object
from specfix.deployment.model import Tensor
from specfix.errors import CannotCheck
from specfix.record import record

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tekken.json",
)
PICKLED = frozenset({".bin", ".pt", ".pth", ".ckpt"})


@record(frozen=True)
class Files:
    """What was found of one model. ``folder`` is the user's own; ``note`` is an assumption to be told; ``modelopt`` is
    ModelOpt's own file beside config.json."""

    config: Config
    folder: Path | None = None
    tensors: Mapping[str, Tensor] | None = None
    generation_config: Config | None = None
    tokenizer_files: tuple[str, ...] = ()
    note: str | None = None
    modelopt: Config | None = None


def read_folder(folder: Path, label: str | None = None) -> Files:
    """The files of a model in a folder; ``label`` is what messages call it, where that is not its path."""
    prefix = f"{label}:" if label else f"{folder}/"
    config, generation = folder / "config.json", folder / "generation_config.json"
    modelopt = folder / "hf_quant_config.json"
    if config.is_symlink() and not config.exists():
        raise CannotCheck(f"{prefix}config.json is a link that leads nowhere")
    if not config.exists():
        raise CannotCheck(f"{label or f'the folder {folder}'} has no config.json")
    tensors = read_tensors(folder, prefix)
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLED) if tensors is None else []
    return Files(
        read_config(config, f"{prefix}config.json"),
        folder,
        tensors,
        read_config(generation, f"{prefix}generation_config.json") if generation.exists() else None,
        tuple(str(folder / name) for name in TOKENIZER_FILES if (folder / name).is_file()),
        f"{prefix}{pickled[0]} is a pickle, which may run code and is not read" if pickled else None,
        modelopt=read_config(modelopt, f"{prefix}hf_quant_config.json") if modelopt.exists() else None,
    )


def read_config(path: Path, name: str) -> Config:
    """A JSON file as a Config that is called ``name``."""
    values, text = read_json_object(path, name, pairs=once(name, alike=False))
    return Config(values, name, text)
