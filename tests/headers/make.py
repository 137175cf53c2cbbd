"""Make the headers in this folder: what trainers of drafting heads save, by building their own model classes.

Each model is built on torch's meta device, so that it has names, types and shapes and no weights, and its state is
filtered as the trainer does before it saves. Run by hand, in an environment of its own::

    pip install torch speculators==0.9.0
    git clone https://github.com/sgl-project/SpecForge; git clone https://github.com/SafeAILab/EAGLE
    python tests/headers/make.py SpecForge EAGLE

The trainers' code is run and not kept here; the configs are theirs, or those that stand below.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).parent
LABEL = "synthetic: built on torch's meta device, no weights"
TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "bool": "BOOL"}

SPECFORGE = (
    "llama3-8B-eagle3",
    "qwen3-8b-eagle3",
    "qwen3-8b-peagle",
    "qwen3-8b-dflash",
    "qwen3-8b-dspark",
    "qwen3-30B-A3B-eagle3.1",
)
EAGLE = {  # file of the config to the module of the model
    "eagle/train/EAGLE-LLaMA3-Instruct-8B": "cnets1",
    "eagle/train/llama_2_chat_7B_config.json": "cnets1",
    "eagle/traineagle3/config.json": "cnets",
}

LLAMA = {
    "model_type": "llama",
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-05,
}
QWEN = LLAMA | {"model_type": "qwen3", "vocab_size": 151936, "intermediate_size": 12288, "rms_norm_eps": 1e-06}
VERIFIERS = {"llama": "meta-llama/Llama-3.1-8B-Instruct", "qwen3": "Qwen/Qwen3-8B"}
SPECULATORS: dict[str, dict[str, Any]] = {
    "eagle3-llama": {"type": "eagle3", "layer": LLAMA, "draft_vocab_size": 32000},
    "eagle3-llama-norm-before-fc": {
        "type": "eagle3",
        "layer": LLAMA,
        "draft_vocab_size": 32000,
        "norm_before_fc": True,
        "norm_before_residual": True,
        "eagle_aux_hidden_state_layer_ids": [2, 16, 29],
    },
    "eagle3-qwen3": {"type": "eagle3", "layer": QWEN, "draft_vocab_size": 32000, "norm_output": True, "fc_norm": True},
    "eagle3-llama-whole-vocabulary": {"type": "eagle3", "layer": LLAMA, "draft_vocab_size": 128256},
    "dflash-qwen3": {
        "type": "dflash",
        "layer": QWEN | {"num_hidden_layers": 5},
        "draft_vocab_size": 32000,
        "mask_token_id": 151669,
        "aux_hidden_state_layer_ids": [2, 10, 18, 26, 34],
    },
    "dflash-qwen3-whole-vocabulary": {
        "type": "dflash",
        "layer": QWEN | {"num_hidden_layers": 5},
        "draft_vocab_size": 151936,
        "mask_token_id": 151669,
        "aux_hidden_state_layer_ids": [2, 10, 18, 26, 34],
    },
    "peagle-llama": {
        "type": "peagle",
        "layer": LLAMA | {"num_hidden_layers": 2},
        "draft_vocab_size": 32000,
        "mask_token_id": 128255,
    },
}


def main(specforge: Path, eagle: Path) -> None:
    """Write one file for each model of each trainer."""
    for name, made in {**of_specforge(specforge), **of_eagle(eagle), **of_speculators()}.items():
        rows = ",\n  ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in made.pop("tensors").items())
        head = json.dumps(made, indent=1)[:-2]
        (HERE / f"{name}.json").write_text(f'{head},\n "tensors": {{\n  {rows}\n }}\n}}\n')
        print(name)


def of_specforge(folder: Path) -> dict[str, dict[str, Any]]:
    sys.path.insert(0, str(folder))
    auto = importlib.import_module("specforge.modeling.auto")
    torch = importlib.import_module("torch")

    found = {}
    for name in SPECFORGE:
        file = folder / "configs" / f"{name}.json"
        config = auto.AutoDraftModelConfig.from_file(str(file))
        with torch.device("meta"):
            model = auto.AutoDraftModel.from_config(config)
        state = model.state_dict()  # what specforge/export/to_hf.py writes, embeddings included
        found[f"specforge-{name.lower()}"] = described(
            "sgl-project/SpecForge", commit(folder), f"configs/{name}.json", json.loads(file.read_text()), state
        )
    return found


def of_eagle(folder: Path) -> dict[str, dict[str, Any]]:
    torch = importlib.import_module("torch")
    sys.path.insert(0, str(folder))
    found = {}
    for place, module in EAGLE.items():
        values = json.loads((folder / place).read_text())
        with torch.device("meta"):
            # newer Transformers fill in rope_scaling, which this code reads in the old form
            config = SimpleNamespace(**{"rope_scaling": None, "pretraining_tp": 1, "pad_token_id": None} | values)
            bias = values.get("bias", True)  # as eagle/model/ea_model.py takes it
            built = importlib.import_module(f"eagle.model.{module}").Model(config, bias=bias)
        label = "eagle3-llama3" if module == "cnets" else "llama2" if "llama_2" in place else "llama3"
        found[f"eagle-{label}"] = described("SafeAILab/EAGLE", commit(folder), place, values, built.state_dict())
    return found


def of_speculators() -> dict[str, dict[str, Any]]:
    torch = importlib.import_module("torch")
    config_module = importlib.import_module("speculators.config")
    models = importlib.import_module("speculators.model").SpeculatorModel.registry
    greedy = importlib.import_module("speculators.proposals.greedy").GreedyTokenProposalConfig

    found = {}
    for name, given in SPECULATORS.items():
        kind, layer = given["type"], given["layer"]
        own = {key: value for key, value in given.items() if key not in ("type", "layer")}
        registry = config_module.SpeculatorModelConfig.registry
        config = registry[kind](
            transformer_layer_config=layer,
            speculators_config=config_module.SpeculatorsConfig(
                algorithm=kind,
                proposal_methods=[greedy(speculative_tokens=3)],
                default_proposal_method="greedy",
                verifier=config_module.VerifierConfig(name_or_path=VERIFIERS[layer["model_type"]], architectures=[]),
            ),
            **own,
        )
        with torch.device("meta"):
            model = models[kind](config)
        left_out = set(model._keys_to_ignore_on_save or ())
        state = {key: value for key, value in model.state_dict().items() if key not in left_out}
        values = json.loads(config.to_json_string())
        found[f"speculators-{name}"] = described(
            "vllm-project/speculators", version("speculators"), None, values, state
        )
    return found


def described(
    trainer: str, revision: str, config_from: str | None, config: Mapping[str, Any], state: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "trainer": trainer,
        "revision": revision,
        "config_from": config_from,
        "label": LABEL,
        "config": config,
        "tensors": {key: [kind(value), list(value.shape)] for key, value in sorted(state.items())},
    }


def kind(tensor: Any) -> str:
    return TYPES[str(tensor.dtype).removeprefix("torch.")]


def commit(folder: Path) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
