"""Deployments to be judged: the examples of the rules' pages, with some of their values changed."""

from __future__ import annotations

import copy
import inspect
import json
import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from specfix.checker.registry import load_rules
from specfix.checker.rule import Rule
from specfix.checking import check
from specfix.deployment.model import INTEGERS
from specfix.deployment.presets import PRESETS
from specfix.deployment.serving import COMMON
from specfix.engines.find import find_engine
from specfix.testing import WIDTHS, Case, case_hardware, cases, write_model, write_shim

from .drawing import Choose, one
from .junk import BASES, configs, junk, mutated

REPAIR = re.compile(r'"(?:un)?safe"')
OPTIONS_OF_CHECK = inspect.signature(check).parameters
ENGINES = ("0.26.0", "0.32.0", "0.33.0", "0.10.0", "0.12.0", "0.20.2")
OPTIONS = (
    *("max_model_len", "num_speculative_tokens", "max_num_seqs", "tensor_parallel_size", "block_size", "dtype"),
    *("kv_cache_dtype", "attention_backend", "pipeline_parallel_size", "method", "enforce_eager", "greedy"),
)
SIZES = (1, 0, 2, 3, 8, 4096, 8192, 32000, 128256, 2**20)
COUNTS = (1, 2, 3, 5, 16, 64, 128, 512, 2048, 8192, 131072, 10**6, 2**40, 0, -1)
METHODS = ("eagle3", "eagle", "mtp", "dflash", "draft_model", "ngram", "medusa", "mlp_speculator", "dspark", "suffix")
DTYPES = ("bfloat16", "float16", "float32", "auto", "fp8", "fp8_e4m3", "fp8_e5m2", "int8")
BACKENDS = ("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "XFORMERS", "FLASHMLA", "NONE")
VARIABLES = (
    "VLLM_USE_V1",
    "VLLM_ATTENTION_BACKEND",
    "VLLM_USE_V2_MODEL_RUNNER",
    "VLLM_PLUGINS",
    "CUDA_VISIBLE_DEVICES",
)
WORDS = ("1", "0", "", "FLASHINFER", "a,b", "specfix_shim", "x y")
FILES = ("generation_config.json", "tokenizer.json", "tokenizer_config.json", "hf_quant_config.json")
TOKENIZER = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 2, "content": "<s>"}]}
CONTENTS: tuple[dict[str, Any], ...] = (
    {},
    TOKENIZER,
    {"min_p": 0.1, "temperature": 0.6, "eos_token_id": [1, 2]},
    {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}},
    {"added_tokens_decoder": {"0": {"content": "<s>"}}, "chat_template": "x", "model_max_length": 10**30},
)


@dataclass(frozen=True)
class Pair:
    """A deployment as a page's example gives it, but for the models' places."""

    given: Mapping[str, Any]

    def written(self, folder: Path) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The models written below ``folder``, and the options that ``specfix.check`` takes."""
        given = self.given
        models = tuple(
            str(write_model(folder / given[side].get("folder", side), given[side], BASES))
            for side in ("target", "draft")
            if given.get(side)
        )
        serve = dict(given.get("serve", {}))
        env = {name: str(value) for name, value in serve.pop("env", {}).items()}
        if "shim" in given:
            env["PYTHONPATH"] = str(write_shim(folder / "shim", given["shim"]))
        options = {name: value for name, value in serve.items() if name in COMMON and name in OPTIONS_OF_CHECK}
        return models, {
            **options,
            "flags": {name: value for name, value in serve.items() if name not in (*COMMON, "speculative")},
            "speculative_config": serve.get("speculative", {}),
            "env": env,
            "engine": given["engine"],
            "hardware": case_hardware(given.get("hardware")),
        }


@cache
def examples() -> tuple[Case, ...]:
    """Those of all pages that state no command."""
    return tuple(case for rule in own_rules() for case in cases(rule.page) if "command" not in case.given)


@cache
def repairable() -> tuple[Case, ...]:
    """Those of them in which a rule finds something that it may know a repair for."""
    pages = {rule.page for rule in own_rules() if REPAIR.search(rule.page.with_suffix(".py").read_text("utf-8"))}
    return tuple(case for case in examples() if case.page in pages and fires(case))


def own_rules() -> list[Rule]:
    return [rule for rule in load_rules() if rule.predicate.__module__.startswith("specfix_rules.")]


def fires(case: Case) -> bool:
    return bool(case.expected) and not case.expected[0].startswith("skipped")


def any_pair(choose: Choose) -> Pair:
    """An example with up to five changes."""
    return changed(choose, examples(), 5)


def any_repairable(choose: Choose) -> Pair:
    """An example that something is found of, with up to two changes."""
    return changed(choose, repairable(), 2)


def changed(choose: Choose, several: Sequence[Case], most: int) -> Pair:
    given = copy.deepcopy(dict(one(choose, several).given))
    for _ in range(choose(most + 1)):
        WAYS[choose(len(WAYS))](choose, given)
    return Pair(given)


def side(choose: Choose, given: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in ("draft", "target") if given.get(name)]
    model: dict[str, Any] = given[one(choose, names)]
    return model


def change_config(choose: Choose, given: dict[str, Any]) -> None:
    model = side(choose, given)
    own = {"base", "folder", "absent", "tensors", "files"}
    before = configs()[model["base"]] | {key: value for key, value in model.items() if key not in own}
    after = mutated(choose, {key: value for key, value in before.items() if key not in model.get("absent", ())})
    model["absent"] = [*model.get("absent", ()), *(key for key in before if key not in after)]
    model |= {key: value for key, value in after.items() if key not in own and value is not before.get(key, own)}


def change_base(choose: Choose, given: dict[str, Any]) -> None:
    side(choose, given)["base"] = one(choose, sorted(configs()))


def change_engine(choose: Choose, given: dict[str, Any]) -> None:
    given["engine"] = f"vllm {one(choose, ENGINES)}"


def change_hardware(choose: Choose, given: dict[str, Any]) -> None:
    given["hardware"] = one(choose, [None, *PRESETS])


def change_option(choose: Choose, given: dict[str, Any]) -> None:
    name = one(choose, OPTIONS)
    kinds = {"method": METHODS, "attention_backend": BACKENDS, "dtype": DTYPES, "kv_cache_dtype": DTYPES}
    usual: tuple[Any, ...] = (True, False) if name in ("enforce_eager", "greedy") else kinds.get(name, COUNTS)
    given["serve"] = {**given.get("serve", {}), name: one(choose, usual)}


def change_flag(choose: Choose, given: dict[str, Any]) -> None:
    flags = sorted(find_engine(given["engine"]).serve.flags or {})
    if flags:
        name, number = one(choose, flags).replace("-", "_"), choose(len(COUNTS) + 4)
        value = COUNTS[number] if number < len(COUNTS) else (True, False, None, junk(choose))[number - len(COUNTS)]
        given["serve"] = {**given.get("serve", {}), name: value}


def change_key(choose: Choose, given: dict[str, Any]) -> None:
    serve = dict(given.get("serve", {}))
    keys = sorted(find_engine(given["engine"]).speculative.keys or ["method"])
    value = one(choose, COUNTS) if choose(2) else junk(choose)
    given["serve"] = {**serve, "speculative": {**serve.get("speculative", {}), one(choose, keys): value}}


def change_variable(choose: Choose, given: dict[str, Any]) -> None:
    serve = dict(given.get("serve", {}))
    given["serve"] = {**serve, "env": {**serve.get("env", {}), one(choose, VARIABLES): one(choose, WORDS)}}


def change_tensors(choose: Choose, given: dict[str, Any]) -> None:
    model = side(choose, given)
    tensors = dict(model.get("tensors") or {"fc.weight": [8, 24]})
    name = one(choose, list(tensors))
    old = tensors[name]
    shape = list(old["shape"] if isinstance(old, dict) else old)
    way = choose(5)
    if way == 0:
        del tensors[name]
    elif way == 1:
        tensors[name.replace("layers.0", "layers.1", 1) + one(choose, ("", ".bias", "_scale", ".weight"))] = old
    elif way == 2:
        tensors[name] = [*shape, one(choose, SIZES)] if choose(2) or not shape else shape[1:]
    elif way == 3 and shape:
        shape[choose(len(shape))] = one(choose, SIZES)
        tensors[name] = shape
    else:
        tensors[name] = {"dtype": one(choose, ["F16", "U9", "", *WIDTHS]), "shape": [1, *shape][: 1 + len(shape)]}
        kind, count = tensors[name]["dtype"], math.prod(shape)
        if kind in INTEGERS and count <= 64:
            tensors[name]["values"] = [choose(2) for _ in range(count)]
    model["tensors"] = bounded(tensors)


def bounded(tensors: dict[str, Any]) -> dict[str, Any]:
    """Those whose data a sparse file can hold."""
    sizes = {name: math.prod(given["shape"] if isinstance(given, dict) else given) for name, given in tensors.items()}
    return {name: given for name, given in tensors.items() if sizes[name] < 2**36}


def change_file(choose: Choose, given: dict[str, Any]) -> None:
    model = side(choose, given)
    files = dict(model.get("files") or {})
    name = one(choose, FILES)
    files[name] = mutated(choose, files[name] if name in files and choose(2) else one(choose, CONTENTS))
    model["files"] = files


WAYS = (
    *(change_config,) * 6,
    *(change_engine, change_option, change_hardware, change_base),
    *(change_flag, change_key, change_variable, change_tensors, change_file),
)


@contextmanager
def workplace() -> Iterator[Path]:
    """An empty folder, whose name holds no word that an engine takes a method from."""
    with tempfile.TemporaryDirectory(prefix="pair-") as folder:
        yield Path(folder)


def shown(given: Mapping[str, Any]) -> str:
    """A pair for a report of a failure."""
    return json.dumps(given, default=str)
