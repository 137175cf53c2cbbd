"""What kind of draft a model's files say that it is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from specfix.deployment.config import Config

# speculators_model_type to the method with which vLLM serves it; others keep their own name
SPECULATORS_METHODS = {"peagle": "eagle3", "dflash2": "dflash"}

MODEL_TYPES = {
    "eagle": "eagle",
    "dflash": "dflash",
    "medusa": "medusa",
    "mlp_speculator": "mlp_speculator",
    "mtp": "mtp",
    "gemma4_assistant": "mtp",
    "gemma4_unified_assistant": "mtp",
    "muse_glimmer_assistant": "dflash",
}

# First match counts. Class names are CamelCase, so a word ends before a capital, a digit or the end.
ARCHITECTURES = (
    (re.compile(r"Eagle3|P[Ee]agle"), "eagle3"),
    (re.compile(r"DSpark"), "dspark"),
    (re.compile(r"DFlash|MuseGlimmerAssistant|LiLiCorr|XPress"), "dflash"),
    (re.compile(r"^Eagle(?=[A-Z])|Eagle$"), "eagle"),  # Eagle2_5_VL is a vision model
    (re.compile(r"MTP|NextN$"), "mtp"),
    (re.compile(r"Medusa"), "medusa"),
    (re.compile(r"MLPSpeculator"), "mlp_speculator"),
)

# Keys that only one kind of head has, where no name tells; first match counts.
MARKS = (
    (("markov_rank", "dspark_block_size", "dspark_target_layer_ids"), "dspark"),
    (("dflash_config",), "dflash"),
    (("medusa_num_heads",), "medusa"),
    (("eagle_aux_hidden_state_layer_ids", "eagle_config", "draft_vocab_size"), "eagle3"),
)

LAYER = re.compile(r"(?:.*\.)?layers\.(\d+)\.")


def named_kind(config: Config) -> str | None:
    """The kind that the config's own names tell: no full model bears them."""
    speculators = config.values.get("speculators_model_type")
    if isinstance(speculators, str) and (config.is_speculators or not config.values.get("architectures")):
        return SPECULATORS_METHODS.get(speculators, speculators)
    for architecture in config.values.get("architectures") or ():
        for pattern, kind in ARCHITECTURES:
            if pattern.search(architecture):
                return kind
    model_type = config.values.get("model_type") or ""
    method = config.values.get("method")
    if model_type == "eagle" and isinstance(method, str):  # vLLM's EAGLE format serves three methods
        return method
    return "mtp" if model_type.endswith("_mtp") else MODEL_TYPES.get(model_type)


def head_kind(config: Config, tensors: object = None) -> str | None:
    """The kind of drafting head that this is: by its names, else by marks in its config, else by tensors that only a
    head has. None where nothing tells: an EAGLE head may look just like a small model of its target's class.
    """
    return named_kind(config) or marked_kind(config) or tensor_kind(tensors)


def draft_kind(config: Config, tensors: object = None) -> str:
    """The same of what is given as a draft, which is a model of its own where nothing tells."""
    return head_kind(config, tensors) or "draft_model"


def decoder_layers(config: Config, tensors: object = None) -> int | None:
    """How many layers the tensors have, else how many the config states: the config of some one-layer heads still
    states their target's. None where neither tells."""
    if isinstance(tensors, Mapping):
        return len({match[1] for match in map(LAYER.match, tensors) if match})
    stated = config.value("num_hidden_layers")
    return None if stated is None else int(stated)


def marked_kind(config: Config) -> str | None:
    """The kind that keys tell which only such a head's config has."""
    for keys, kind in MARKS:
        if config.find(*keys):
            return kind
    # `bias` is no key of Llama: the EAGLE authors' one-layer heads have it
    if config.value("num_hidden_layers") == 1 and config.value("model_type") == "llama" and config.find("bias"):
        return "eagle"
    return None


def tensor_kind(tensors: object) -> str | None:
    """The kind that tensor names tell: ``fc`` joins hidden states, ``d2t`` maps a reduced vocabulary."""
    if not isinstance(tensors, Mapping):
        return None
    names = {name.removeprefix("model.") for name in tensors}
    if "d2t" in names or any(name.startswith("midlayer.") for name in names):
        return "eagle3"
    return "eagle" if "fc.weight" in names else None
