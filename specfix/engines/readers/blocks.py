"""KV cache blocks: which sizes the attention backends take, and in which unit the draft proposer counts."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.facts.hardware import BlockFacts, KernelSizes, LatentBlocks, Unit
from specfix.engines.facts.recurrent import RecurrentFacts
from specfix.engines.readers.recurrent import read_recurrent
from specfix.engines.source.classes import Class, Classes, Lineage
from specfix.engines.source.tree import SourceTree, dotted, find_function, literal, walk

REGISTRIES = ("v1/attention/backends/registry.py", "attention/backends/registry.py")
PROPOSERS = ("v1/spec_decode/llm_base_proposer.py", "v1/spec_decode/eagle.py")
TABLE = "v1/worker/block_table.py"
PICKERS = ("v1/worker/utils.py", "v1/worker/gpu_model_runner.py")
SIZES = "get_supported_kernel_block_sizes"
PLANNERS = ("v1/core/kv_cache_planning.py", "v1/core/kv_cache_utils.py")
OLD_SIZES = "supported_kernel_block_sizes"  # a class attribute
UNKNOWN = KernelSizes(None, None)


def read_blocks(tree: SourceTree, unknown: dict[str, str], methods: MethodFacts | None = None) -> BlockFacts:
    backends = dict(_backends(tree))
    if not backends:
        unknown["blocks.backends"] = "no registry of attention backends by name and class"
    sizes = {name: _kernel_sizes(tree, lineage) for name, lineage in backends.items()}
    if backends and not any(lineage.find(SIZES) or lineage.find(OLD_SIZES) for lineage in backends.values()):
        sizes = {}
        unknown["blocks.backends"] = f"its attention backends have no {SIZES}"
    unknown |= {
        f"blocks.backends.{name}": "no list of numbers"
        for name, stated in sizes.items()
        if stated.sizes is None and stated.multiples is None and not stated.special
    }
    default: dict[str, int | None] = {}
    for platform in ("cuda", "cpu", "rocm"):
        size, stated = _default(tree, platform)
        default[platform] = size
        if not stated:
            unknown[f"blocks.default.{platform}"] = "no place where it is set"
    proposer = _proposer_unit(tree)
    if proposer is None:
        unknown["blocks.proposer"] = "no block size of a known form in the draft proposer"
    windows_own = _windows_own(tree)
    if windows_own is None:
        unknown["blocks.windows_own"] = "no Attention.get_kv_cache_spec that makes both kinds of spec"
    override_checked, null_reserved = _override_checked(tree)
    if override_checked is None:
        facts = ("blocks.override_checked", "blocks.null_reserved", "blocks.sequence_checked")
        unknown |= dict.fromkeys(facts, f"none of {', '.join(PLANNERS)}")
    return BlockFacts(
        proposer=proposer,
        table=_table_unit(tree, unknown),
        common_size=any(_picks_common_size(tree.module(file)) for file in PICKERS),
        default=default,
        backends=sizes,
        cpu_backend=_cpu_backend(tree, unknown),
        default_adapts={platform: _adapts(tree, platform) for platform in default},
        recurrent=read_recurrent(tree, methods) if methods else RecurrentFacts(),
        windows_own=windows_own,
        cpu_latent=_cpu_latent(tree),
        override_checked=override_checked,
        null_reserved=null_reserved,
        sequence_checked=None if null_reserved is None else _sequence_checked(tree),
    )


def _override_checked(tree: SourceTree) -> tuple[bool | None, bool | None]:
    """``available_memory = [override * bytes_per_block …]`` in ``get_kv_cache_configs``, which then checks it, and
    whether it checks what is left of that without one block: ``avail_mem - _pool_bytes_per_block(…)``."""
    functions = [found for file in PLANNERS if (found := tree.function(file, "get_kv_cache_configs"))]
    for function in functions:
        if "num_gpu_blocks_override" not in ast.unparse(function):
            continue
        for branch in walk(function, ast.If):
            bounded = any(dotted(node.targets[0]) == "available_memory" for node in walk(branch, ast.Assign))
            if bounded and "override" in ast.unparse(branch.test):
                return True, any(
                    isinstance(node.op, ast.Sub) and "_bytes_per_block" in ast.unparse(node.right)
                    for node in walk(function, ast.BinOp)
                )
    return (False, False) if functions or any(tree.module(file) for file in PLANNERS) else (None, None)


def _sequence_checked(tree: SourceTree) -> bool:
    """``if needed_memory > available_memory: raise``."""
    names = ("_check_enough_kv_cache_memory", "check_enough_kv_cache_memory")
    functions = [found for file in PLANNERS for name in names if (found := tree.function(file, name))]
    return any(
        ast.unparse(branch.test) == "needed_memory > available_memory" and any(walk(branch, ast.Raise))
        for function in functions
        for branch in walk(function, ast.If)
    )


def _cpu_latent(tree: SourceTree) -> LatentBlocks | None:
    """``if cpu_mla_enabled: cache_config.block_size = 16``, with what the names in the test stand for."""
    function = tree.function("platforms/cpu.py", "check_and_update_config")
    if function is None:
        return None
    named = {
        target.id: node.value
        for node in walk(function, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def parts(test: ast.expr, depth: int = 6) -> Iterator[ast.AST]:
        for node in ast.walk(test):
            yield node
            if depth and isinstance(node, ast.Name) and node.id in named:
                yield from parts(named[node.id], depth - 1)

    for branch in walk(function, ast.If):
        sizes = [literal(n.value) for n in branch.body if isinstance(n, ast.Assign) and _is_block_size(n.targets[0])]
        nodes = list(parts(branch.test))
        words = {one.attr for one in nodes if isinstance(one, ast.Attribute)}
        words |= {str(one.value) for one in nodes if isinstance(one, ast.Constant)}
        if sizes and isinstance(sizes[0], int) and "use_mla" in words:
            compared = [one for one in nodes if isinstance(one, ast.Compare)]
            types = {str(literal(one.comparators[0])) for one in compared if "'model_type'" in ast.unparse(one.left)}
            return LatentBlocks(sizes[0], "_is_amx_tile_supported" in words, tuple(sorted(types)))
    return None


def _windows_own(tree: SourceTree) -> bool | None:
    """The spec of a layer with a window gets another block size than that of full attention: where the layer makes them
    (``Attention.get_kv_cache_spec``), or the runner in releases where it does."""
    files = ("model_executor/layers/attention/attention.py", "attention/layer.py")
    places = [(file, "Attention.get_kv_cache_spec") for file in files]
    places.append(("v1/worker/gpu_model_runner.py", "GPUModelRunner.get_kv_cache_spec"))
    function = next(filter(None, (tree.function(*place) for place in places)), None)
    if function is None:
        return None if any(tree.class_(file, "Attention") for file in files) else False
    sizes: dict[str, set[str]] = {"SlidingWindowSpec": set(), "FullAttentionSpec": set()}
    for call in walk(function, ast.Call):
        if (name := dotted(call.func)) in sizes:
            sizes[name] |= {ast.unparse(one.value) for one in call.keywords if one.arg == "block_size"}
    if not all(sizes.values()):
        return None
    return not sizes["SlidingWindowSpec"] <= sizes["FullAttentionSpec"]


def _backends(tree: SourceTree) -> Iterator[tuple[str, Lineage]]:
    """``NAME = "package.module.Class"`` in the enumeration of attention backends."""
    classes = Classes(tree)
    for file in REGISTRIES:
        node = tree.class_(file, "AttentionBackendEnum")
        for statement in node.body if node else ():
            path = literal(statement.value) if isinstance(statement, ast.Assign) else None
            if isinstance(statement, ast.Assign) and isinstance(path, str) and "." in path:
                found = classes.at(path)
                name = ast.unparse(statement.targets[0])
                if len(found) == 1 and found[0] is not None:
                    yield name, classes.lineage(found[0])
                elif tree.module(f"{path.partition('.')[2].rpartition('.')[0].replace('.', '/')}.py"):
                    yield name, Lineage((), False)  # made by a call


def _kernel_sizes(tree: SourceTree, lineage: Lineage) -> KernelSizes:
    method = lineage.method(SIZES)
    if method is None:
        value = getattr(found[1], "value", None) if (found := lineage.find(OLD_SIZES)) else None
        return next(_sizes(tree, found[0], value, None)) if found and isinstance(value, ast.expr) else UNKNOWN
    owner, function = method
    branches = list(_branches(tree, owner, function.body, None))
    usual = [branch for branch in branches if branch.condition is None]
    special = [branch for branch in branches if branch.condition is not None]
    if len(usual) != 1:
        return KernelSizes(None, None, special=tuple(special))
    if len(special) == 1 and (special[0].condition or "").startswith("not "):
        # ``if not large: return small; return large``: the usual case is the one that asks for nothing
        (other,) = special
        large = KernelSizes(usual[0].sizes, usual[0].multiples, (other.condition or "").removeprefix("not "))
        return KernelSizes(other.sizes, other.multiples, special=(large,))
    return KernelSizes(usual[0].sizes, usual[0].multiples, special=tuple(special))


def _branches(tree: SourceTree, owner: Class, body: Iterable[ast.stmt], condition: str | None) -> Iterator[KernelSizes]:
    """What each ``return`` says, under the test that leads to it."""
    for statement in body:
        if isinstance(statement, ast.If):
            test = ast.unparse(statement.test)
            both = f"{condition} and {test}" if condition else test
            yield from _branches(tree, owner, statement.body, both)
            yield from _branches(tree, owner, statement.orelse, f"not ({test})")
        elif isinstance(statement, ast.Return) and statement.value is not None:
            yield from _sizes(tree, owner, statement.value, condition)


def _sizes(tree: SourceTree, owner: Class, value: ast.expr, condition: str | None) -> Iterator[KernelSizes]:
    """``[16, MultipleOf(64)]``, ``[64] if test else [128]``, ``[64 if test else 128]``, ``list(NAME)``."""
    choice = value if isinstance(value, ast.IfExp) else None
    if isinstance(value, ast.List) and len(value.elts) == 1 and isinstance(value.elts[0], ast.IfExp):
        choice = value.elts[0]
    if choice is not None:
        for part, test in ((choice.body, ast.unparse(choice.test)), (choice.orelse, condition)):
            listed = part if isinstance(part, ast.List | ast.Tuple) else ast.List([part])
            yield from _sizes(tree, owner, listed, test)
        return
    if isinstance(value, ast.Call) and dotted(value.func) in {"list", "tuple"} and value.args:
        value = value.args[0]
    if isinstance(value, ast.Name):
        value = _module_constant(tree, owner.file, value.id) or value
    elements = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    exact = [literal(element) for element in elements]
    multiples = [_multiple(element) for element in elements]
    if any(not isinstance(e, int) and m is None for e, m in zip(exact, multiples, strict=True)):
        yield KernelSizes(None, None, condition)
        return
    sizes = tuple(e for e in exact if isinstance(e, int))
    yield KernelSizes(sizes or None, tuple(m for m in multiples if m is not None) or None, condition)


def _multiple(node: ast.expr) -> int | None:
    """n of ``MultipleOf(n)``."""
    if isinstance(node, ast.Call) and (dotted(node.func) or "").endswith("MultipleOf"):
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        number = literal(arguments[0]) if arguments else None
        return number if isinstance(number, int) else None
    return None


def _module_constant(tree: SourceTree, file: str, name: str) -> ast.expr | None:
    module = tree.module(file)
    for statement in module.body if module else ():
        if isinstance(statement, ast.Assign) and dotted(statement.targets[0]) == name:
            return statement.value
        if isinstance(statement, ast.AnnAssign) and dotted(statement.target) == name:
            return statement.value
    return None


def _picks_common_size(module: ast.Module | None) -> bool:
    """A function that looks for a size that all backends of a group take, and raises where there is none."""
    return any(
        "common_block_size" in function.name and any(True for _ in walk(function, ast.Raise))
        for function in (walk(module, ast.FunctionDef) if module else ())
    )


def _table_unit(tree: SourceTree, unknown: dict[str, str]) -> Unit | None:
    """Kernel blocks, where the table is made with a kernel block size into which it splits the manager's."""
    node = tree.class_(TABLE, "BlockTable")
    init = find_function(node, "__init__") if node else None
    if init is None:
        unknown["blocks.table"] = f"no BlockTable in {TABLE}"
        return None
    kernel = any(argument.arg == "kernel_block_size" for argument in init.args.args + init.args.kwonlyargs)
    return "kernel" if kernel else "manager"


def _proposer_unit(tree: SourceTree) -> Unit | None:
    """What the proposer's ``block_size`` is taken from; None where its assignments do not agree."""
    for file in PROPOSERS:
        module = tree.module(file)
        units = set(_units(tree, module)) if module else set()
        if units:
            return units.pop() if len(units) == 1 else None
    return None


def _units(tree: SourceTree, module: ast.Module) -> Iterator[Unit]:
    for node in walk(module, ast.Assign):
        if (dotted(node.targets[0]) or "").rpartition(".")[2] != "block_size":
            continue
        value = ast.unparse(node.value)
        if "tree" in value:
            continue  # drafting in trees has a loop of its own
        if "kernel_block_sizes[" in value:
            yield "kernel"
        elif value.endswith("cache_config.block_size"):
            yield "manager"
        elif value.endswith(".kv_cache_spec.block_size"):
            # A metadata builder has a spec of its own, made with the kernel block size in some releases.
            builder = "builder" in value.lower()
            yield "kernel" if builder and _builders_get_kernel_size(tree) else "manager"


def _builders_get_kernel_size(tree: SourceTree) -> bool:
    function = tree.function(PICKERS[0], "create_metadata_builders")
    return function is not None and "copy_with_new_block_size(kernel_block_size)" in ast.unparse(function)


def _default(tree: SourceTree, platform: str) -> tuple[int | None, bool]:
    """``cache_config.block_size = N`` where the user has given none; else the config class's own default. None where it
    is computed; and whether such a place was found at all."""
    module = tree.module(f"platforms/{platform}.py")
    for branch in walk(module, ast.If) if module else ():
        test = ast.unparse(branch.test)
        if "block_size is None" in test or "not cache_config.user_specified_block_size" in test:
            assigned = [node.value for node in walk(branch, ast.Assign) if _is_block_size(node.targets[0])]
            if assigned:
                return _number(assigned[-1]), True  # a special case comes first, the usual one in its ``else``
    for file in ("config/cache.py", "config.py"):
        config = tree.class_(file, "CacheConfig")
        for statement in config.body if config else ():
            if isinstance(statement, ast.AnnAssign) and dotted(statement.target) == "DEFAULT_BLOCK_SIZE":
                value = literal(statement.value)
                return (value if isinstance(value, int) else None), True
    return None, False


def _is_block_size(target: ast.expr) -> bool:
    return (dotted(target) or "").endswith("cache_config.block_size")


def _number(value: ast.expr) -> int | None:
    """``128``, or the number handed to a function that may choose another: ``preferred(backends, 128)``."""
    found = literal(value)
    if found is None and isinstance(value, ast.Call):
        numbers = [literal(argument) for argument in value.args]
        found = next((number for number in numbers if isinstance(number, int)), None)
    return found if isinstance(found, int) else None


def _adapts(tree: SourceTree, platform: str) -> bool:
    """Whether the backend is asked for the size that it prefers, by this platform or by the base of all."""
    for file in (f"platforms/{platform}.py", "platforms/interface.py"):
        function = tree.function(file, "update_block_size_for_backend")
        if function is not None:
            return "preferred_block_size" in ast.unparse(function)
    return False


def _cpu_backend(tree: SourceTree, unknown: dict[str, str]) -> str | None:
    """The last thing that the CPU platform returns: earlier ones are for MLA and the like."""
    function = tree.function("platforms/cpu.py", "get_attn_backend_cls")
    last = function.body[-1] if function else None
    value = last.value if isinstance(last, ast.Return) else None
    path = literal(value)
    if isinstance(path, str):
        found = Classes(tree).at(path)
        method = Classes(tree).lineage(found[0]).method("get_name") if found and found[0] else None
        names = [literal(node.value) for node in walk(method[1], ast.Return)] if method else []
        if names and isinstance(names[0], str):
            return names[0]
    parts = (dotted(value.func) or "").split(".") if isinstance(value, ast.Call) else []
    if len(parts) == 3 and parts[0] == "AttentionBackendEnum":  # AttentionBackendEnum.CPU_ATTN.get_path()
        return parts[1]
    unknown["blocks.cpu_backend"] = "the CPU platform does not simply name a backend"
    return None
