"""What an engine does with all that the patches change, a step at a time; and what each step came to.

Runs in a process whose path holds a shim and a package called vllm (fake_vllm.py), with neither of them imported yet.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import json
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

Outcomes = dict[str, list[str]]
"""Step -> ["gave", a value] or ["raised", an error]."""

ADDRESS = re.compile(" at 0x[0-9a-f]+")
DRAFT = "org/draft"
NAMES = [f"layers.{number}" for number in range(20)]
STEPS = (
    *("get('vllm.config')", "get('vllm.v1.spec_decode.eagle')", "get('vllm.v1.worker.cpu_model_runner')"),
    "draft := call(get('vllm.config').ModelConfig, DRAFT, 'draft')",
    *("draft.max_model_len", "draft.hf_config.max_position_embeddings", "draft.hf_overrides"),
    "call(call(get('vllm.config').SpeculativeConfig, draft).compute_hash)",
    "call(call(get('vllm.config').SpeculativeConfig, None).compute_hash)",
    "call(get('vllm.config').ModelConfig, DRAFT).max_model_len",
    "runner := call(get('vllm.v1.worker.cpu_model_runner').CPUModelRunner)",
    *("call(runner.load_model)", "runner.model.wrapped.layers"),
    "call(get('vllm.v1.worker.cpu_model_runner').expand_batch_to_tokens, Tensor(), Tensor(), 4, 0, 1)",
    "call(get('vllm.v1.worker.cpu_model_runner').apply_top_k_top_p, 'logits', 20, None)",
    "get('vllm.utils.cpu_triton_utils').rejection_greedy_sample_kernel[(1,)].__name__",
    "table := call(get('vllm.v1.worker.block_table').BlockTable, 64, 16)",
    "proposer := call(get('vllm.v1.spec_decode.eagle').EagleProposer, N(cache_config=N(block_size=64)), NAMES)",
    "object.__new__(get('vllm.v1.spec_decode.eagle').EagleProposer).attn_layer_names",
    "setattr(proposer, 'runner', N(input_batch=N(block_table=[table])))",
    "call(proposer.validate_same_kv_cache_group, N(kv_cache_groups=[N(layer_names=NAMES)]))",
    *("proposer.block_size", "call(proposer.first)"),
)


class Tensor:
    """Takes every method that sampling calls on one."""

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        return lambda *_, **__: self

    def __repr__(self) -> str:
        return "tensor"


def call(function: Any, *given: Any, by_name: bool = False) -> Any:
    """Call it with what is given, and with the default or None for each further parameter that it has."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return function(*given)
    named = [each for each in parameters if each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}]
    more = {each.name: None if each.default is each.empty else each.default for each in named[len(given) :]}
    if by_name and len(named) >= len(given):
        return function(**{each.name: value for each, value in zip(named, given, strict=False)}, **more)
    return function(*given, **more)


def use(by_name: bool) -> Outcomes:
    """Make every step, whatever became of those before it; with arguments by name, or by place."""
    names: dict[str, Any] = {"get": importlib.import_module, "N": SimpleNamespace, "Tensor": Tensor}
    names |= {"NAMES": NAMES, "DRAFT": DRAFT, "call": lambda *given: call(*given, by_name=by_name)}
    outcomes: Outcomes = {}
    for step in STEPS:
        try:
            outcomes[step] = ["gave", ADDRESS.sub("", repr(eval(f"({step})", names)))]
        except BaseException as error:
            outcomes[step] = ["raised", ADDRESS.sub("", described(error))]
    return outcomes


def observe(by_name: bool = False) -> dict[str, Any]:
    """Use vLLM with the shim: what became of activation ("" is well), what the steps came to, what each patch changed,
    and all lines that the shim said."""
    activated = ""
    try:
        importlib.import_module("specfix_shim").activate()
    except BaseException as error:
        activated = described(error)
    core, log = (sys.modules.get(f"specfix_shim.{name}") for name in ("core", "log"))
    changes = follow(core) if core is not None else {}
    outcomes = use(by_name)
    return {"activated": activated, "with": outcomes, "changed": changes, "lines": list(getattr(log, "said", ()))}


def compare(by_name: bool = False) -> dict[str, Any]:
    """The same, and under "without" what the steps came to before, without the shim."""
    without = use(by_name)
    for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
        del sys.modules[name]
    return {"without": without, **observe(by_name)}


def described(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def follow(core: Any) -> dict[str, list[str]]:
    """Patch -> what it changes from now on."""
    patches: dict[str, list[str]] = {}
    make = core.apply

    def apply(patch: str, *given: Any) -> None:
        before = changed()
        make(patch, *given)
        patches.setdefault(patch, []).extend(sorted(changed() - before))

    core.apply = apply
    return patches


def changed() -> set[str]:
    """What in vLLM is the shim's, by module and name."""
    found = set()
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "vllm" and isinstance(module, ModuleType):
            for attribute, value in vars(module).items():
                if is_ours(value):
                    found.add(f"{name}.{attribute}")
                if issubclass(type(value), type) and value.__module__ == name:
                    found |= {f"{name}.{attribute}.{each}" for each, member in vars(value).items() if is_ours(member)}
    return found


def is_ours(value: Any) -> bool:
    if type(value) is FunctionType:
        return "specfix_shim" in value.__code__.co_filename
    return type(value).__module__.startswith("specfix_shim.")


def warm_up() -> None:
    """Have this process do once what its children would each do for the first time, which is half of their work."""
    for module in ("dataclasses", "hashlib", "logging"):
        importlib.import_module(module)
    ast.parse(textwrap.dedent(inspect.getsource(warm_up)))
    for function in (getattr, iter):
        with contextlib.suppress(ValueError):
            inspect.signature(function)


def forked(function: Callable[[], Any]) -> Any:
    """What a function gives in a child process; a text where the child ended otherwise."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            with os.fdopen(writing, "w") as file:
                json.dump(function(), file)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        told = file.read()
    os.waitpid(child, 0)
    return json.loads(told) if told else "the process ended"
