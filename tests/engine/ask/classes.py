"""What config classes make of configs: each one of Transformers with nothing given, those of vLLM, and real configs.

Prints {"transformers": version, "bare": {model type: answer}, "varied": the same made of "values", "own": {name:
answer}, "real": [[file, key, answer]]}, where ``key`` is "" for a config as a whole and else that of an inner config,
and an answer is {"class": name, "fields": {attribute: value}, "inherited": {attribute of the class: value}, "parts":
{key: class}} or {"error": text}.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
TEXT_KEYS = ("text_config", "llm_config", "thinker_config")
# keys that others are derived by, with values that are no class's defaults
VARIED = {
    "hidden_size": 384,
    "intermediate_size": 640,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "num_hidden_layers": 7,
    "max_position_embeddings": 1536,
    "rope_theta": 12345.0,
    "sliding_window": 96,
    "vocab_size": 250000,
    "tie_word_embeddings": True,
}
PLAIN = (bool, int, float, str, type(None))


def main() -> None:
    os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    transformers = importlib.import_module("transformers")
    mapping = importlib.import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    names = importlib.import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING_NAMES
    bare = {model_type: answer(partial(made, mapping, model_type, {})) for model_type in names}
    varied = {model_type: answer(partial(made, mapping, model_type, VARIED)) for model_type in names}
    real: list[tuple[str, str, Any]] = []
    own_classes, registry = own()
    for file in sorted(CORPUS.glob("*/**/config.json")):
        values = json.loads(file.read_text())
        model_type = values.get("model_type")
        cls = registry.get(model_type) or (mapping[model_type] if model_type in names else None)
        if cls is not None:
            real += asked(str(file.relative_to(CORPUS)), cls, values)
    said = {name: answer(cls) for name, cls in own_classes.items()}
    found = {"bare": bare, "varied": varied, "values": VARIED, "own": said, "real": real}
    print(json.dumps({"transformers": transformers.__version__, **found}))


def made(mapping: Any, model_type: str, values: dict[str, Any]) -> Any:
    return mapping[model_type](**values)


def own() -> tuple[dict[str, Any], dict[str, Any]]:
    """vLLM's own classes by name, and those that it takes first by model type."""
    config = importlib.import_module("vllm.transformers_utils.config")
    registry = {model_type: config._CONFIG_REGISTRY[model_type] for model_type in config._CONFIG_REGISTRY}
    return {cls.__name__: cls for cls in registry.values() if cls.__module__.startswith("vllm.")}, registry


def asked(file: str, cls: Any, values: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """What the class makes of a real config, and what the class of its text config makes of that."""
    configs: list[Any] = []

    def make() -> Any:
        configs.append(cls.from_dict(json.loads(json.dumps(values))))
        return configs[0]

    found = [(file, "", answer(make))]
    for key in TEXT_KEYS if configs else ():
        if isinstance(values.get(key), dict) and is_config(getattr(configs[0], key, None)):
            found.append((file, key, answer(partial(getattr, configs[0], key))))
    return found


def answer(make: Callable[[], Any]) -> dict[str, Any]:
    try:
        config = make()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    attributes = {name: value for name, value in vars(config).items() if not name.startswith("_")}
    inherited: dict[str, Any] = {}  # what stands in the classes
    for cls in type(config).__mro__:
        if cls.__name__ in {"PretrainedConfig", "PreTrainedConfig"}:
            break
        for name, member in vars(cls).items():
            if isinstance(member, property) and not name.startswith("_"):
                try:
                    attributes[name] = getattr(config, name)
                except Exception:
                    continue
            elif not name.startswith("_") and not callable(member) and name not in attributes:
                inherited.setdefault(name, plain(member))
    parts = {name: type(value).__name__ for name, value in attributes.items() if is_config(value)}
    fields = {name: plain(value) for name, value in attributes.items() if name not in parts}
    return {"class": type(config).__name__, "fields": fields, "inherited": inherited, "parts": parts}


def is_config(value: Any) -> bool:
    return hasattr(value, "to_dict") and hasattr(value, "model_type")


def plain(value: Any) -> Any:
    """As JSON; what JSON has not is named."""
    if type(value).__module__ == "torch":
        return str(value).removeprefix("torch.")
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            return {"<int keys>": len(value)}
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    return f"<object {type(value).__name__}>"


if __name__ == "__main__":
    sys.stdout.flush()
    main()
