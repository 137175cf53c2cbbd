"""What the imported engine says of the architectures that it registers.

    ENGINE_PYTHON models.py

The last line printed is one JSON object:

    {"methods": […], "registry": {architecture: "module:Class"}, "drafts": […], "dropped": {architecture: release},
     "classes": {architecture: {"class": "module:Class", "eagle3": …, "gives_states": …, "traits": {…},
                                "default_aux": {layers: […]}}}, "failed": {architecture: why}}

A class is imported as the engine does it; where that fails ("failed"), the engine says nothing of it here. eagle3 is
`supports_eagle3`, and the traits are those of the engine's own inspection. default_aux asks an object of the class
that has layers and nothing else; where the class wants more than that it is null. gives_states tells of the code that
the class would run whether a model that its constructor makes speaks of aux states in `forward`, and has what the
engine asserts of it when layers are set.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import typing
from types import SimpleNamespace
from typing import Any

TRAITS = ("is_hybrid", "is_attention_free", "has_inner_state")
LAYERS = (6, 7, 28, 61)
GETTERS = ("get_eagle3_default_aux_hidden_state_layers", "get_eagle3_aux_hidden_state_layers")
MODELS = "vllm.model_executor.models"
MODEL_FOLDERS = (MODELS, "vllm.models")


def main() -> None:
    """Ask each registered class."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    registry = importlib.import_module(f"{MODELS}.registry")
    interfaces = importlib.import_module(f"{MODELS}.interfaces")
    speculative = importlib.import_module("vllm.config.speculative")
    models = registry.ModelRegistry.models
    classes: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for architecture, entry in models.items():
        try:
            cls = entry.load_model_cls()
        except Exception as error:  # whatever a module dies of on this machine
            failed[architecture] = f"{type(error).__name__}: {error}"[:200]
            continue
        info = registry._ModelInfo.from_model_cls(cls)
        eagle3 = bool(interfaces.supports_eagle3(cls))
        classes[architecture] = {
            "class": f"{cls.__module__}:{cls.__name__}",
            "eagle3": eagle3,
            "gives_states": gives_states(cls, getattr(interfaces, "EagleModelMixin", None)),
            "traits": {trait: bool(getattr(info, trait)) for trait in TRAITS},
            "default_aux": {count: default_aux(cls, count) for count in LAYERS} if eagle3 else {},
        }
    answer = {
        "methods": typing.get_args(speculative.SpeculativeMethod),
        "registry": {name: f"{entry.module_name}:{entry.class_name}" for name, entry in models.items()},
        "drafts": list(registry._SPECULATIVE_DECODING_MODELS),
        "dropped": dict(registry._PREVIOUSLY_SUPPORTED_MODELS),
        "classes": classes,
        "failed": failed,
    }
    print(json.dumps(answer))


def default_aux(cls: Any, count: int) -> list[int] | None:
    """The default layers of a model of this class with ``count`` layers."""
    inner = SimpleNamespace(layers=[None] * count, config=SimpleNamespace(num_hidden_layers=count))
    language = SimpleNamespace(model=inner, config=inner.config)
    model = object.__new__(cls)
    importlib.import_module("torch").nn.Module.__init__(model)
    for name, value in (
        ("model", inner),
        ("language_model", language),
        ("config", inner.config),
        ("text_config", inner.config),
    ):
        object.__setattr__(model, name, value)
    if hasattr(cls, "get_language_model"):
        object.__setattr__(model, "get_language_model", lambda: language)
    getter = next(getattr(model, name) for name in GETTERS if hasattr(model, name))
    try:
        return list(getter())
    except (AttributeError, TypeError):
        return None


def gives_states(cls: Any, mixin: type | None) -> bool | None:
    """Whether a model that the constructor names, or a method that it calls for its model, has aux states.

    Null where none is named: it is found at run time.
    """
    functions: list[Any] = []
    for init in (inspect.unwrap(vars(owner)["__init__"]) for owner in cls.__mro__ if "__init__" in vars(owner)):
        if not inspect.isfunction(init):
            break
        called = (getattr(cls, name, None) for name in init.__code__.co_names if name.endswith("init_model"))
        functions += [init, *(function for function in called if inspect.isfunction(function))]
        if "super" not in init.__code__.co_names:
            break
    named = [
        function.__globals__.get(name) or getattr(cls, name, None)  # Model(…) or self.model_class(…)
        for function in functions
        for name in function.__code__.co_names
    ]
    models = [each for each in named if isinstance(each, type) and each.__module__.startswith(MODEL_FOLDERS)]
    models = [each for each in models if hasattr(each, "forward")]
    takes = [speaks_of_aux(each) and (mixin is None or issubclass(each, mixin)) for each in models]
    return any(takes) if takes else None


def speaks_of_aux(cls: type) -> bool:
    """Whether ``forward``, or an inherited one that it calls in turn, has a name for aux states."""
    for owner in cls.__mro__:
        code = getattr(vars(owner).get("forward"), "__code__", None)
        if code is not None:
            if any("aux" in name for name in (*code.co_names, *code.co_varnames)):
                return True
            if "super" not in code.co_names:
                return False
    return False


if __name__ == "__main__":
    main()
