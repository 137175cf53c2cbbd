"""Small models that the tests write and break."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specfix.deployment.config import Config

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rope_theta": 500000.0,
}
EAGLE3: dict[str, Any] = {
    **LLAMA,
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": 32000,
    "max_position_embeddings": 2048,
}
SPECULATORS: dict[str, Any] = {
    "architectures": ["Eagle3Speculator"],
    "speculators_model_type": "eagle3",
    "speculators_config": {"verifier": {"name_or_path": "meta-llama/Llama-3.1-8B-Instruct"}},
    "draft_vocab_size": 32000,
    "transformer_layer_config": {
        "model_type": "llama",
        "max_position_embeddings": 4096,
        "num_hidden_layers": 1,
    },
}
TENSORS: dict[str, Any] = {
    "fc.weight": {"dtype": "BF16", "shape": [4, 12], "data_offsets": [0, 96]},
    "norm.weight": {"dtype": "BF16", "shape": [4], "data_offsets": [96, 104]},
}


def config(values: dict[str, Any]) -> Config:
    """``values`` as a config that was read from config.json."""
    return Config(values, "config.json", json.dumps(values, indent=2))


def safetensors(tensors: dict[str, Any], data: int = 104) -> bytes:
    """A safetensors file with ``data`` bytes of weights."""
    header = json.dumps({"__metadata__": {"format": "pt"}, **tensors}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(data)


def write_model(folder: Path, values: dict[str, Any], tensors: dict[str, Any] | None = None) -> Path:
    """A model's folder with config.json and, where given, one weight file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(values, indent=2))
    if tensors is not None:
        (folder / "model.safetensors").write_bytes(safetensors(tensors))
    return folder
