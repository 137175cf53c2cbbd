"""Speculation on the CPU platform: refused, or done with stand-ins for the Triton kernels."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from specfix.engines.facts.hardware import CpuFacts, StandIn
from specfix.engines.source.tree import SourceTree, dotted, find_function, literal, walk

RUNNER = "v1/worker/cpu_model_runner.py"
WORKER = "v1/worker/cpu_worker.py"
ATTENTION = "v1/attention/backends/cpu_attn.py"
PLATFORM_FILES = (RUNNER, WORKER, "platforms/cpu.py")
STAND_INS = "utils/cpu_triton_utils.py"
SAMPLER = "v1/sample/rejection_sampler.py"
# what torch.cpu asks of the CPU, and the flag without which the answer is no
ISA = {"_is_amx_tile_supported": "amx_tile", "_is_avx512_supported": "avx512f"}
AUX_SETUP = {"_setup_eagle3_aux_hidden_state_outputs", "set_aux_hidden_state_layers"}


def read_cpu(tree: SourceTree, unknown: dict[str, str]) -> CpuFacts:
    replaced = {name: function for name, function, _ in _replacements(tree)}
    overwritten = {name for name, _, registered in _replacements(tree) if not registered}
    return CpuFacts(
        refuses=_refusal(tree),
        stand_ins=(*_failing(tree, replaced), *_unreached(tree, overwritten)),
        aux_setup=_aux_setup(tree, unknown),
        sampling_expands_copy=_expands_copy(tree, replaced),
        spared_by_triton=_spared_by_triton(tree),
        fp8_cache_needs=_fp8_cache_needs(tree),
        cache_bytes_heeded=_cache_bytes_heeded(tree),
    )


def _fp8_cache_needs(tree: SourceTree) -> tuple[str, ...]:
    """``if fp8_kv and not supports_amx and not supports_avx512: raise``, where each name is what torch says of the
    CPU."""
    function = tree.function(ATTENTION, "_get_attn_isa")
    names = {
        dotted(assign.targets[0]): {(dotted(call.func) or "").rpartition(".")[2] for call in walk(assign, ast.Call)}
        for assign in (walk(function, ast.Assign) if function else ())
    }
    for branch in walk(function, ast.If) if function else ():
        test = branch.test
        if (
            not isinstance(test, ast.BoolOp)
            or not isinstance(test.op, ast.And)
            or not isinstance(branch.body[0], ast.Raise)
        ):
            continue
        asked, *lacking = test.values
        flags = [
            ISA.get(name)
            for part in lacking
            if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)
            for name in names.get(dotted(part.operand), ())
        ]
        if "is_quantized_kv_cache" in names.get(dotted(asked), ()) and len(flags) == len(lacking) and None not in flags:
            return tuple(sorted(filter(None, flags)))
    return ()


def _cache_bytes_heeded(tree: SourceTree) -> bool | None:
    """What the worker says that there is for the cache reads the flag."""
    module = tree.module(WORKER)
    function = find_function(module, "determine_available_memory") if module else None
    if function is None:
        return None
    return any(node.attr == "kv_cache_memory_bytes" for node in walk(function, ast.Attribute))


def _spared_by_triton(tree: SourceTree) -> bool:
    """The function that puts the stand-ins in place returns at once where HAS_TRITON."""
    for file in PLATFORM_FILES:
        module = tree.module(file)
        for function in walk(module, ast.FunctionDef) if module else ():
            if any(True for _ in _pairs(function)) and any(
                isinstance(branch.test, ast.Name)
                and branch.test.id == "HAS_TRITON"
                and any(isinstance(statement, ast.Return) for statement in branch.body)
                for branch in walk(function, ast.If)
            ):
                return True
    return False


def _refusal(tree: SourceTree) -> str | None:
    """``assert self.speculative_config is None, "…"``, or an ``if`` on it that raises."""
    for file in PLATFORM_FILES:
        module = tree.module(file)
        for node in walk(module, ast.Assert) if module else ():
            if _asks_for_none(node.test, ast.Is):
                return str(literal(node.msg) or ast.unparse(node.test))
        for branch in walk(module, ast.If) if module else ():
            if _is_config(branch.test) or _asks_for_none(branch.test, ast.IsNot):
                raised = next((each for each in branch.body if isinstance(each, ast.Raise)), None)
                if raised is not None:
                    texts = (literal(node) for node in walk(raised, ast.Constant))
                    return next((text for text in texts if isinstance(text, str)), ast.unparse(raised))
    return None


def _is_config(node: ast.expr) -> bool:
    return (dotted(node) or "").rpartition(".")[2] == "speculative_config"


def _asks_for_none(test: ast.expr, operator: type[ast.cmpop]) -> bool:
    return (
        isinstance(test, ast.Compare)
        and _is_config(test.left)
        and isinstance(test.ops[0], operator)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
    )


def _aux_setup(tree: SourceTree, unknown: dict[str, str]) -> bool | None:
    module = tree.module(RUNNER)
    if module is None:
        unknown["cpu.aux_setup"] = f"no {RUNNER}"
        return None
    load = find_function(module, "load_model")
    if load is None:
        return True  # the GPU runner's own, which sets the layers
    called = {ast.unparse(call.func).rpartition(".")[2] for call in walk(load, ast.Call)}
    return bool(called & AUX_SETUP) or "super().load_model(" in ast.unparse(load)


def _replacements(tree: SourceTree) -> Iterator[tuple[str, ast.FunctionDef, bool]]:
    """Kernels and what runs instead: assigned over the kernel, or registered (True) for its dotted name.

    A kernel that belongs to a class or a launcher goes by ``Owner.kernel``, every other one by its own name.
    """
    stand_ins = tree.module(STAND_INS)
    if stand_ins is None:
        return
    wrapped = {
        target.id: node.value.args[0]
        for node in walk(stand_ins, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Call) and len(node.value.args) == 1
    }
    for file in PLATFORM_FILES:
        module = tree.module(file)
        for kernel, value, registered in _pairs(module) if module else ():
            name = (dotted(value) or "").rpartition(".")[2]
            function = find_function(stand_ins, dotted(wrapped[name]) or "" if name in wrapped else name)
            if function is not None:
                owner, own_name = kernel.split(".")[-2:]
                yield f"{owner}.{own_name}" if own_name == "kernel" else own_name, function, registered


def _pairs(module: ast.AST) -> Iterator[tuple[str, ast.expr, bool]]:
    for node in walk(module, ast.Assign):
        kernel = dotted(node.targets[0])
        if kernel and "." in kernel:
            yield kernel, node.value, False
    for mapping in walk(module, ast.Dict):
        for key, value in zip(mapping.keys, mapping.values, strict=True):
            name = literal(key)
            if isinstance(name, str) and "." in name:
                yield name, value, True


def _failing(tree: SourceTree, replaced: dict[str, ast.FunctionDef]) -> Iterator[StandIn]:
    """Launches ``kernel[grid](…)`` that the stand-in cannot take."""
    launched: set[str] = set()
    for file, module in _v1_modules(tree, replaced):
        for call in walk(module, ast.Call):
            kernel = dotted(call.func.value) if isinstance(call.func, ast.Subscript) else None
            if kernel in replaced:
                launched.add(kernel)
                unexpected, missing = _mismatch(call, replaced[kernel])
                if unexpected or missing:
                    yield StandIn(kernel, file, call.lineno, unexpected, missing)
    yield from _failing_by_name(tree, {k: f for k, f in replaced.items() if k not in launched})


def _failing_by_name(tree: SourceTree, replaced: dict[str, ast.FunctionDef]) -> Iterator[StandIn]:
    """Kernels launched by a dispatcher, which hands the kernel's own parameters on in their order."""
    for file, module in _v1_modules(tree, replaced):
        for name, stand_in in replaced.items():
            kernel = find_function(module, name)
            if kernel is None or not any("triton" in ast.unparse(each) for each in kernel.decorator_list):
                continue
            given = [argument.arg for argument in kernel.args.args]
            taken = [argument.arg for argument in stand_in.args.args]
            unexpected = tuple(given[len(taken) :]) if stand_in.args.vararg is None else ()
            missing = tuple(taken[len(given) : len(taken) - len(stand_in.args.defaults)])
            if unexpected or missing:
                yield StandIn(name, file, kernel.lineno, unexpected, missing)


def _unreached(tree: SourceTree, overwritten: set[str]) -> Iterator[StandIn]:
    """Kernels that a launcher took for itself (``launcher(kernel=K)``) before its name was assigned over."""
    for file, module in _v1_modules(tree, overwritten):
        for call in walk(module, ast.Call):
            for keyword in call.keywords:
                if keyword.arg == "kernel" and dotted(keyword.value) in overwritten:
                    yield StandIn(dotted(keyword.value) or "", file, call.lineno, (), unreached=True)


def _v1_modules(tree: SourceTree, replaced: Collection[str]) -> Iterator[tuple[str, ast.Module]]:
    """Modules of the V1 runner that name a replaced kernel; the V2 runner has kernels of its own."""
    names = {name.partition(".")[0] for name in replaced}
    for file in tree.files("v1") if names else ():
        text = tree.text(file) or ""
        if not file.startswith("v1/worker/gpu/") and any(name in text for name in names):
            module = tree.module(file)
            if module is not None:
                yield file, module


def _mismatch(call: ast.Call, function: ast.FunctionDef) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Arguments of ``call`` that ``function`` has no place for, and parameters that it leaves out."""
    arguments = function.args
    positional = [arg.arg for arg in arguments.posonlyargs + arguments.args]
    named = {keyword.arg for keyword in call.keywords}
    if None in named or any(isinstance(arg, ast.Starred) for arg in call.args):
        return (), ()  # spread from a dict or list: not to be told here
    filled = positional[: len(call.args)]
    known = set(positional) | {arg.arg for arg in arguments.kwonlyargs}
    surplus = range(len(positional), len(call.args)) if arguments.vararg is None else ()
    unexpected = [f"argument {n + 1}" for n in surplus]
    if arguments.kwarg is None:
        unexpected += [k.arg for k in call.keywords if k.arg and (k.arg not in known or k.arg in filled)]
    required = positional[: len(positional) - len(arguments.defaults)]
    required += [a.arg for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None]
    return tuple(unexpected), tuple(name for name in required if name not in filled and name not in named)


def _expands_copy(tree: SourceTree, replaced: dict[str, ast.FunctionDef]) -> bool:
    """Whether the stand-in of ``expand_kernel`` fills a converted copy of its first argument, and no more.

    Right are: no conversion, a copy back (``output.copy_(…)``, ``output[…] = …``), or a caller that goes
    another way on a CPU before it launches the kernel.
    """
    stand_in = replaced.get("expand_kernel")
    if stand_in is None or not stand_in.args.args:
        return False
    caller = tree.function(SAMPLER, "expand_batch_to_tokens")
    for branch in walk(caller, ast.If) if caller else ():
        asks = ast.unparse(branch.test)
        if ("is_cpu" in asks or "HAS_TRITON" in asks) and any(isinstance(s, ast.Return) for s in branch.body):
            return False
    output = stand_in.args.args[0].arg
    return _converted(stand_in, output) and not _written_back(stand_in, output)


def _converted(function: ast.FunctionDef, output: str) -> bool:
    """``_ensure_int64(output)``, ``output.to(torch.int64)``, ``output.long()``: not the caller's tensor."""
    for call in walk(function, ast.Call):
        owner, _, method = (dotted(call.func) or "").rpartition(".")
        if owner == output and method in {"to", "long", "int", "float", "double", "type", "clone"}:
            return True
        if "int64" in method and any(dotted(argument) == output for argument in call.args):
            return True
    return False


def _written_back(function: ast.FunctionDef, output: str) -> bool:
    copied = any(dotted(call.func) == f"{output}.copy_" for call in walk(function, ast.Call))
    items = (node for node in walk(function, ast.Subscript) if isinstance(node.ctx, ast.Store))
    return copied or any(dotted(node.value) == output for node in items)
