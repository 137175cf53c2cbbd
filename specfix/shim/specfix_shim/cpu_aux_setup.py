"""Tell the target which layers' states the draft wants, where the CPU runner's load_model does not."""

from __future__ import annotations

from typing import Any

from .changes import Plan, after
from .inspection import need, text, tree
from .log import Inert, say

DONE_BY = ("_setup_eagle3_aux_hidden_state_outputs", "set_aux_hidden_state_layers", "super().load_model(")
PATCH = "cpu_aux_setup"


def plan(module: Any, settings: dict[str, Any]) -> Plan:
    runner = need(module, "CPUModelRunner")
    if "load_model" not in vars(runner):
        raise Inert("the CPU runner loads with the GPU runner's load_model, which sets the layers")
    source = text(tree(vars(runner)["load_model"]))
    if any(call in source for call in DONE_BY):
        raise Inert("the CPU runner sets the layers itself")
    need(runner, "_get_eagle3_aux_layers_from_config")
    return [after(runner, "load_model", PATCH, _set_layers)], "the target's auxiliary layers are set after loading"


def _set_layers(runner: Any, *_: Any, **__: Any) -> None:
    if not getattr(runner, "use_aux_hidden_state_outputs", False):
        return
    model = _unwrapped(runner.model)
    defaults = need(model, "get_eagle3_default_aux_hidden_state_layers", "get_eagle3_aux_hidden_state_layers")
    layers = tuple(runner._get_eagle3_aux_layers_from_config() or defaults())
    if not layers or not all(isinstance(layer, int) for layer in layers):
        raise Inert(f"{layers} are no layers")
    model.set_aux_hidden_state_layers(layers)
    say(PATCH, f"auxiliary layers {layers} set on {type(model).__name__}")


def _unwrapped(model: Any) -> Any:
    """The model itself: an attribute that is set on a wrapper around it would not reach it."""
    unwrap = getattr(type(model), "unwrap", None)
    if unwrap is not None:
        return _unwrapped(unwrap(model))
    inner = vars(model).get("_orig_mod") or vars(model).get("_modules", {}).get("_orig_mod")  # of torch.compile
    return model if inner is None else _unwrapped(inner)
