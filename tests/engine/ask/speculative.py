"""What an engine says of its speculative config: fields, what becomes of drafts' configs, and which method is chosen.

Runs in the engine's environment. What is tried is made from the engine's own words (texts in its functions), so that
nothing that it tests for is left out; each answer stands beside what was asked.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import itertools
import json
import textwrap
import traceback
import typing
from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from types import SimpleNamespace
from typing import Any

SPECULATIVE: Any = import_module("vllm.config.speculative")
CONFIG: Any = SPECULATIVE.SpeculativeConfig
PYDANTIC: Any = import_module("pydantic")
TRANSFORMERS: Any = import_module("transformers")
ANNOTATED: Any = typing.Annotated
NOTHING_LIKE_IT = "zz-none"


def fields() -> dict[str, Any]:
    return {name: field(name) for name in CONFIG.__pydantic_fields__}


def field(name: str) -> dict[str, Any]:
    info = CONFIG.__pydantic_fields__[name]
    default = info.get_default()
    whole = (info.annotation, *info.metadata)
    adapter = PYDANTIC.TypeAdapter(
        ANNOTATED[whole] if info.metadata else info.annotation,
        config=None if dataclasses.is_dataclass(info.annotation) else {"arbitrary_types_allowed": True},
    )

    def takes(value: object) -> bool:
        try:
            adapter.validate_python(value)
        except PYDANTIC.ValidationError:
            return False
        return True

    bounds = {
        kind: getattr(mark, kind) for mark in info.metadata for kind in ("ge", "gt", "le", "lt") if hasattr(mark, kind)
    }
    choices = list(choices_of(info.annotation))
    return {
        "default": default if isinstance(default, int | float | str | list | None) else repr(default),
        "choices": choices if choices and not takes(NOTHING_LIKE_IT) else None,
        "nullable": takes(None),
        "takes_anything": takes(object()),
        "takes": {json.dumps(value): takes(value) for value in (True, 7, 1.5, "text", [0.5], [[1, 2, 3]])},
        "bounds": bounds,
    }


def choices_of(annotation: Any) -> Iterator[object]:
    if isinstance(annotation, enum.EnumMeta):
        yield from annotation.__members__
    elif typing.get_origin(annotation) is typing.Literal:
        yield from typing.get_args(annotation)
    else:
        for part in typing.get_args(annotation):
            yield from choices_of(part)


def refuses_others() -> bool:
    try:
        CONFIG(model="ngram", method="ngram", num_speculative_tokens=1, **{NOTHING_LIKE_IT.replace("-", "_"): 1})
    except PYDANTIC.ValidationError as error:
        return any(each["type"] == "unexpected_keyword_argument" for each in error.errors())
    except TypeError:
        return True
    return False


# What hf_config_override makes of drafts


def overrides() -> list[dict[str, Any]]:
    asked = list(drafts())
    return [{"config": config, **override(config)} for config in asked]


def drafts() -> Iterator[dict[str, Any]]:
    source = ast.parse(textwrap.dedent(inspect.getsource(CONFIG.hf_config_override)))
    texts = sorted({n.value for n in ast.walk(source) if isinstance(n, ast.Constant) and isinstance(n.value, str)})
    words = [text for text in texts if text.replace("_", "").replace(".", "").isalnum()]
    counts = {"num_nextn_predict_layers": 2, "mtp_num_hidden_layers": 3, "num_mtp_modules": 4}
    inner = {"num_attention_heads": 8, "hc_count": 2, "mtp_num_experts": 4, "mtp_num_experts_per_tok": 2}
    common = {"layer_types": ["full_attention"], "quantization_config": {"quant_method": "fp8"}, **inner}
    texts_of: list[dict[str, Any]] = [
        {},
        {"text_config": {**inner, "model_type": "llama", "architectures": ["Inner"], "num_nextn_predict_layers": 5}},
        {"text_config": {**inner, "model_type": "nemotron_h", "architectures": ["Inner"], **counts}},
        {
            "text_config": {
                **inner,
                "model_type": "qwen3_5_moe_text",
                "architectures": ["I"],
                "mtp_num_hidden_layers": 6,
            }
        },
    ]
    for word in words:
        for own, text in itertools.product(({}, counts, {"num_nextn_predict_layers": 0}), texts_of):
            rest = {**common, **own, **text, "mtp_config": {"num_nextn_predict_layers": 7}}
            yield {"model_type": word, "architectures": ["Outer"], **rest}
            yield {"model_type": "llama", "architectures": [word], **rest}
        yield {"model_type": word, "architectures": ["Outer"], **common, "mtp_config": {"num_nextn_predict_layers": 0}}
        yield {"model_type": word, "architectures": ["Outer"], **common}
        for types in (["full_attention"], ["full_attention"] * 2):
            yield {"model_type": word, "architectures": ["Outer"], **common, **counts, "mtp_layer_types": types}
    yield {"model_type": "llama", "architectures": ["Outer"]}


def override(config: dict[str, Any]) -> dict[str, Any]:
    try:
        made = CONFIG.hf_config_override(hf_config(deepcopy(config)))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {key: getattr(made, key, None) for key in ("model_type", "architectures", "n_predict")}


def hf_config(keys: dict[str, Any]) -> Any:
    config = TRANSFORMERS.PretrainedConfig()
    for key, value in keys.items():
        setattr(config, key, hf_config(value) if key == "text_config" else value)
    return config


# Which method is chosen, and how many tokens: __post_init__ itself, on drafts that need no files


class Anything(SimpleNamespace):
    """What nobody set is None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class Draft(Anything):
    """Stands in for the ModelConfig of a draft, which would read its files."""

    hf: typing.ClassVar[dict[str, Any]] = {}

    def __init__(self, model: str, **kwargs: Any) -> None:
        super().__init__()
        self.model, self.max_model_len, self.quantization, self.is_moe = model, 4096, None, False
        self.hf_config = hf_config(deepcopy(self.hf))
        self.architectures = self.hf_config.architectures


def starts() -> list[dict[str, Any]]:
    target = Anything(model="org/target", max_model_len=4096)
    target.hf_config = target.hf_text_config = Anything(model_type="llama", vocab_size=100)
    SPECULATIVE.ModelConfig = Draft
    CONFIG.create_draft_parallel_config = staticmethod(lambda *args, **kwargs: None)
    CONFIG.update_arch_ = lambda self: None
    asked: list[tuple[Any, ...]] = [
        (method, model, "llama", "X", None, 3) for method in methods() for model in models()
    ]
    asked += [(None, "org/plain", kind, "X", None, 3) for kind in model_types()]
    asked += [(None, "org/plain", "qwen3", text, None, 3) for text in texts()]
    asked += [("mtp", "org/plain", "deepseek_mtp", "X", n, k) for n in (None, 1, 2, 3) for k in (None, 1, 2, 3, 4, 6)]
    asked += [("ngram", None, "llama", "X", None, 2), ("suffix", None, "llama", "X", None, None)]
    asked += [("dspark", "org/x-dspark", "qwen3", "Qwen3DSparkModel", None, None)] if "dspark" in methods() else []
    return [start(target, *one) for one in asked]


def methods() -> list[str | None]:
    return [None, *field("method")["choices"]]


def models() -> list[str]:
    return ["ngram", "pkg.Proposer", "org/eagle-x", "org/Eagle3-x", "org/x-dflash", "org/x-dspark", "org/plain"]


def model_types() -> list[str]:
    listed = getattr(SPECULATIVE, "MTPModelTypes", None)
    return ["medusa", "mlp_speculator", "llama", *typing.get_args(listed)]


def texts() -> list[str]:
    source = ast.parse(textwrap.dedent(inspect.getsource(CONFIG.__post_init__)))
    found = {n.value for n in ast.walk(source) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return sorted(text for text in found if text.isalnum() and text[:1].isupper())


def start(target: Any, method: Any, model: Any, kind: str, architecture: str, n_predict: Any, tokens: Any) -> Any:
    config = object.__new__(CONFIG)
    for name, info in CONFIG.__pydantic_fields__.items():
        setattr(config, name, info.get_default())
    given = {"method": method, "model": model, "num_speculative_tokens": tokens}
    for name, value in given.items():
        setattr(config, name, value)
    config.target_model_config, config.target_parallel_config = target, Anything(tensor_parallel_size=1)
    Draft.hf = {"model_type": kind, "architectures": [architecture], "n_predict": n_predict, "block_size": 7}
    Draft.hf["vocab_size"] = 100
    error = line = None
    try:
        config.__post_init__()
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
        frames = [f for f in traceback.extract_tb(raised.__traceback__) if f.filename == SPECULATIVE.__file__]
        line = frames[-1].lineno if frames else None
    custom = getattr(CONFIG, "_is_custom_proposer_path", lambda model: None)(model)
    after = {n: v for n in CONFIG.__pydantic_fields__ if isinstance(v := getattr(config, n), int | float | str | None)}
    return {"given": given, "draft": Draft.hf, "custom": custom, "after": after, "error": error, "line": line}


# The speculators format


def conversions() -> list[dict[str, Any]]:
    algos: Any = import_module("vllm.transformers_utils.configs.speculators.algos")
    base: Any = import_module("vllm.transformers_utils.configs.speculators.base")
    answers = []
    for name, config in speculators(list(algos.SUPPORTED_SPECULATORS_TYPES)):
        answer: dict[str, Any] = {"algorithm": name, "config": config}
        for key, convert in (
            ("converted", base.SpeculatorsConfig.extract_transformers_pre_trained_config),
            ("speculative", base.SpeculatorsConfig.extract_vllm_speculative_config),
        ):
            try:
                answer[key] = convert(config_dict=deepcopy(config))
            except Exception as error:
                answer[key] = f"{type(error).__name__}: {error}"
        answers.append(answer)
    return answers


def speculators(names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    algos: Any = import_module("vllm.transformers_utils.configs.speculators.algos")
    source = ast.parse(inspect.getsource(algos))
    constants = {n.value for n in ast.walk(source) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    keys = sorted(text for text in constants if text.isidentifier() and text.islower() and text not in names)
    architectures = sorted(text for text in constants if text.isalnum() and text[:1].isupper())
    lists = {key: [3, 5, 9] for key in keys if "layer_ids" in key}
    full: dict[str, Any] = {
        key: index + 10 for index, key in enumerate(keys) if key not in {"model_type", "architectures"}
    } | lists
    head = {
        "speculators_config": {"proposal_methods": [{"speculative_tokens": 5}], "verifier": {"name_or_path": "org/t"}}
    }
    for name in [*names, NOTHING_LIKE_IT]:
        layers: list[dict[str, Any]] = [
            {},
            *({"model_type": kind, "hidden_size": 8} for kind in ("llama", "qwen3", "other")),
        ]
        layers.append({"dflash_config": {"left": 1}, "draft_vocab_size": 4})
        for layer, values in itertools.product(
            layers, (full, {}, lists, {**full, **dict.fromkeys(keys, None), **lists})
        ):
            yield name, {**head, **values, "speculators_model_type": name, "transformer_layer_config": layer}
        for key in [*full]:
            rest = {other: value for other, value in full.items() if other != key}
            yield name, {**head, **rest, "speculators_model_type": name, "transformer_layer_config": {}}
        for architecture in architectures:
            yield (
                name,
                {
                    **head,
                    **full,
                    "architectures": ["Unknown", architecture],
                    "speculators_model_type": name,
                    "transformer_layer_config": {},
                },
            )
        for path in required_of({**head, "speculators_model_type": name, "transformer_layer_config": {}}):
            config = deepcopy({**head, **full, "speculators_model_type": name, "transformer_layer_config": {}})
            part: Any = config
            *outer, last = path
            for step in outer:
                part = part[step]
            del part[last]
            yield name, config


def required_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all that a config holds."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*path, key)
        yield from required_of(part, (*path, key))


if __name__ == "__main__":
    said = {
        "fields": fields(),
        "refuses_others": refuses_others(),
        "mtp": list(typing.get_args(SPECULATIVE.MTPModelTypes)),
        "overrides": overrides(),
        "conversions": conversions(),
        "starts": starts(),
    }
    print()
    print(json.dumps(said))
