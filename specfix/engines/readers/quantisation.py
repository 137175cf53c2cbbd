"""Read whose quantisation a draft's layers are built with, and what of a quantization_config a release reads."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.facts.quantisation import Origin, QuantisationFacts
from specfix.engines.readers.constructed import Built, constructed
from specfix.engines.readers.own_caches import read_own_caches
from specfix.engines.source.classes import Class, Classes
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

HOME = "model_executor/layers/quantization"
REGISTRY = f"{HOME}/__init__.py"
MODELOPT = f"{HOME}/modelopt.py"
UNQUANTISED_MOE = ("model_executor/layers/fused_moe/oracle/unquantized.py", "map_unquantized_backend")
SPECULATIVE = "config/speculative.py"
FOLDERS = {"V1": "v1/spec_decode", "V2": "v1/worker/gpu/spec_decode"}
ASSISTANT = "Gemma4MTPModel"
MODELOPT_FILE = "hf_quant_config.json"

# keys of a quantization_config that can spare layers from being quantised
SPARING = (
    "ignored_layers",
    "modules_to_not_convert",
    "ignore",
    "exclude",
    "exclude_modules",
    "dynamic",
    "modules_in_block_to_quantize",
    "layer_quant_config",
    "quantized_layers",
    "config_groups",
    "extra_config",
    "llm_int8_skip_modules",
)
DRAFTS_OWN = ("get_draft_quant_config", "get_quantization_config")
KNOWN_CHANGES = ("configure_quant_config", "map_draft_quant_config")  # names alone: of fused layers, of a draft
READS_TENSORS = "get_safetensors_params_metadata"


def read_quantisation(tree: SourceTree, unknown: dict[str, str], methods: MethodFacts) -> QuantisationFacts:
    classes = Classes(tree)
    drafts: dict[str, Origin] = {}
    joins: dict[str, dict[str, tuple[str, ...] | None]] = {}
    told: list[str] = []
    guarded: list[str] = []
    for architecture in methods.drafts:
        cls = next(iter(classes.at(methods.architectures.get(architecture, ""))), None)
        if cls is None:
            unknown[f"quantisation.drafts.{architecture}"] = "its class could not be followed"
            continue
        built = constructed(classes, tree, cls)
        drafts[architecture] = _origin(tree, built)
        joins[architecture] = dict(_joins(built))
        if any(_reads(function.node, "cache_config") for function in built.functions):
            told.append(architecture)
        if any("float16" in (tree.text(file) or "") for file in built.own):
            guarded.append(architecture)
    configs = dict(_configs(tree, classes, unknown))
    reading = {name: reads for name, cls in configs.items() if (reads := _read_by(tree, classes, cls)) is not None}
    return QuantisationFacts(
        names=_names(tree, unknown),
        drafts=drafts,
        joins=joins,
        kv_cache_dtype=tuple(told),
        ignore_keys={name: tuple(_sparing(classes, cls)) for name, cls in configs.items()},
        reads_tensors=tuple(reading),
        experts_too=tuple(name for name, experts in reading.items() if experts),
        empty_method_is_none=_empty_is_none(tree, unknown),
        null_algo_refused=_null_refused(tree),
        modelopt_file=MODELOPT_FILE in (tree.text("transformers_utils/config.py") or ""),
        unquantised_moe=_unquantised_moe(tree),
        draft_moe_backend=tuple(_heeding(tree)),
        assistant_scales=tuple(_aliasing(tree)) if ASSISTANT in methods.drafts else (),
        half_guarded=tuple(guarded),
        overridden=_overridden(tree, classes, configs.values()),
        config_files=_config_files(tree, classes, configs),
        own_caches=read_own_caches(tree, classes, methods.architectures),
    )


def _origin(tree: SourceTree, built: Built) -> Origin:
    """Whose quantization config reaches the layers.

    A class that asks for the draft's own builds with that. One that changes what it was given, but for keys of the
    config that spare layers, makes up its own; and so it counts where its file speaks of one that no layer is seen to
    get.
    """
    calls = {
        (dotted(call.func) or "").rpartition(".")[2] for each in built.functions for call in walk(each.node, ast.Call)
    }
    if any(_made_up(function.node) for function in built.functions if function.file in built.own):
        return "own"
    if calls & set(DRAFTS_OWN):
        return "draft"
    if any(_reads(function.node, "quant_config") for function in built.functions):
        return (
            "own"
            if any(_withholds(function.node) for function in built.functions if function.file in built.own)
            else "target"
        )
    mentioned = any(
        word in (tree.text(file) or "") for file in built.own for word in (*DRAFTS_OWN, "config.quant_config")
    )
    return "own" if mentioned else "none"


def _withholds(function: ast.AST) -> bool:
    """A part of the draft is given no quantization config on purpose: which of them, it is not told."""
    words = (word for call in walk(function, ast.Call) for word in call.keywords)
    return any(word.arg == "quant_config" and isinstance(word.value, ast.Constant) for word in words)


def _reads(function: ast.AST, name: str) -> bool:
    """``vllm_config.<name>``, of whatever variable that ends so."""
    return any(
        node.attr == name and isinstance(node.ctx, ast.Load) and (dotted(node.value) or "").endswith("vllm_config")
        for node in walk(function, ast.Attribute)
    )


def _made_up(function: ast.AST) -> bool:
    """Whether a name or attribute ``quant_config`` gets what is neither the target's nor the draft's."""
    spared = {id(node) for test in walk(function, ast.If) if _of_key(test.test) for node in ast.walk(test)}
    for node in walk(function, ast.Assign):
        target = dotted(node.targets[0]) or ""
        if target.rpartition(".")[2] == "quant_config" and id(node) not in spared and not _plain(node.value):
            return True
    changes = (node.value for node in walk(function, ast.Expr) if isinstance(node.value, ast.Call))
    names = [(dotted(call.func) or "").rpartition(".")[2] for call in changes]
    return any("quant_config" in name and name not in KNOWN_CHANGES for name in names)


def _plain(value: ast.expr) -> bool:
    if isinstance(value, ast.Name | ast.Attribute):
        return True
    if isinstance(value, ast.Call):  # of another function it is not known what it makes
        name = (dotted(value.func) or "").rpartition(".")[2]
        return name in {*DRAFTS_OWN, "get_quant_config", "deepcopy", "getattr", "_find_quant_config"}
    return isinstance(value, ast.IfExp) and _of_key(value.test)


def _of_key(test: ast.expr) -> bool:
    """A test that asks a config for a key that spares layers: what it does, the key says too."""
    words = {str(node.value) for node in walk(test, ast.Constant)}
    return bool(words & {"-:", "mtp", "dynamic", "disable_quant_module"})


def _joins(built: Built) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """``self.fc = …Linear(…)`` of the classes in the draft's own file."""
    found: dict[str, list[tuple[str, ...] | None]] = {}
    for function in (each for each in built.functions if each.file in built.own):
        for node in walk(function.node, ast.Assign):
            target, value = node.targets[0], node.value
            if not (
                isinstance(target, ast.Attribute) and dotted(target.value) == "self" and isinstance(value, ast.Call)
            ):
                continue
            if (dotted(value.func) or "").endswith("Linear"):
                given = next((word.value for word in value.keywords if word.arg == "quant_config"), None)
                if any(word.arg is None for word in value.keywords):  # **kwargs: not followed
                    continue
                found.setdefault(target.attr, []).append(_plain_under(function.node, given))
    for name, ways in found.items():
        if all(way == ways[0] for way in ways) and ways[0] != ("?",):
            yield name, ways[0]


def _plain_under(function: ast.AST, given: ast.expr | None, depth: int = 3) -> tuple[str, ...] | None:
    """The methods under which a layer that is given this config is built without it; None: always."""
    if given is None or (isinstance(given, ast.Constant) and given.value is None):
        return None
    if isinstance(given, ast.Name) and depth:
        values = [n.value for n in walk(function, ast.Assign) if given.id in map(dotted, n.targets)]
        if len(values) == 1 and not isinstance(values[0], ast.Call | ast.Attribute):
            return _plain_under(function, values[0], depth - 1)
    if isinstance(given, ast.IfExp):
        methods = _names_compared(given.test)
        return methods if methods and literal(given.body) is None and isinstance(given.orelse, ast.Name) else ("?",)
    return ()


def _names_compared(test: ast.expr) -> tuple[str, ...]:
    """The methods of ``quant_config.get_name() == "…"``."""
    for node in walk(test, ast.Compare):
        if isinstance(node.left, ast.Call) and (dotted(node.left.func) or "").endswith("get_name"):
            value = literal(node.comparators[0])
            if isinstance(node.ops[0], ast.Eq | ast.In):
                return tuple(map(str, value)) if isinstance(value, list | tuple | set) else (str(value),)
    return ()


def _names(tree: SourceTree, unknown: dict[str, str]) -> tuple[str, ...] | None:
    node = tree.assigned(REGISTRY, "QuantizationMethods")
    names = literal(node.slice) if isinstance(node, ast.Subscript) else None
    if isinstance(names, tuple) and all(isinstance(name, str) for name in names):
        return names
    unknown["quantisation.names"] = f"no Literal QuantizationMethods in {REGISTRY}"
    return None


def _configs(tree: SourceTree, classes: Classes, unknown: dict[str, str]) -> Iterator[tuple[str, Class]]:
    """Quantisation method to the class of its config, of ``method_to_config`` and the imports around it."""
    function = tree.function(REGISTRY, "get_quantization_config")
    tables = [node.value for node in walk(function, ast.AnnAssign)] if function else []
    tables += [node.value for node in walk(function, ast.Assign)] if function else []
    table = next((node for node in tables if isinstance(node, ast.Dict) and node.keys), None)
    if function is None or table is None:
        unknown["quantisation.ignore_keys"] = f"no table of configs in {REGISTRY}"
        return
    homes = {alias.asname or alias.name: node for node in walk(function, ast.ImportFrom) for alias in node.names}
    for key, value in zip(table.keys, table.values, strict=True):
        name, home = literal(key), homes.get(getattr(value, "id", ""))
        if isinstance(name, str) and home is not None:
            module = home.module or ""
            path = f"vllm.{HOME.replace('/', '.')}.{module}" if home.level else module
            cls = next(iter(classes.at(f"{path}:{getattr(value, 'id', '')}")), None)
            if cls is not None:
                yield name, cls


def _overridden(tree: SourceTree, classes: Classes, configs: Iterable[Class]) -> tuple[str, ...] | None:
    """The texts that the configs' ``override_quantization_method`` speak of, whatever for, and so does the function
    that makes up ModelOpt's; None where the config stage does not refuse a method that it does not know."""
    file = tree.config_file("ModelConfig")
    stage = tree.function(file, "ModelConfig._verify_quantization") if file else None
    refuses = any(
        isinstance(branch.test, ast.Compare)
        and isinstance(branch.test.ops[0], ast.NotIn)
        and any(isinstance(statement, ast.Raise) for statement in branch.body)
        for branch in (walk(stage, ast.If) if stage else ())
    )
    if not refuses:
        return None
    found: set[str] = set()
    for cls in configs:
        method = classes.lineage(cls).method("override_quantization_method")
        for node in walk(method[1], ast.Constant) if method else ():
            if isinstance(node.value, str) and " " not in node.value:
                found.add(node.value)
    return tuple(sorted(found))


def _config_files(
    tree: SourceTree, classes: Classes, configs: Mapping[str, Class]
) -> dict[str, tuple[str, ...]] | None:
    """What ``get_config_filenames`` of each method gives, where ``get_quant_config`` ends the start without one."""
    function = tree.function("model_executor/model_loader/weight_utils.py", "get_quant_config")
    raises = walk(function, ast.Raise) if function else ()
    if not any("Cannot find the config file" in ast.unparse(node) for node in raises):
        return None
    shorthands = tree.assigned("config/quantization.py", "_ONLINE_SHORTHANDS")
    spared = {literal(key) for key in shorthands.keys if key} if isinstance(shorthands, ast.Dict) else set()
    found: dict[str, tuple[str, ...]] = {}
    for name, cls in configs.items():
        method = classes.lineage(cls).method("get_config_filenames")
        returns = walk(method[1], ast.Return) if method else ()
        files = [literal(node.value) for node in returns if node.value is not None]
        if name not in spared and len(files) == 1 and isinstance(files[0], list) and files[0]:
            found[name] = tuple(map(str, files[0]))
    return found


def _sparing(classes: Classes, cls: Class) -> Iterator[str]:
    words = {node.value for each in classes.lineage(cls).classes for node in walk(each.node, ast.Constant)}
    yield from (key for key in SPARING if key in words)


def _read_by(tree: SourceTree, classes: Classes, cls: Class) -> bool | None:
    """None where the class does not look into the checkpoint; else whether what it finds counts for experts too."""
    found = classes.lineage(cls).method("maybe_update_config")
    if found is None or READS_TENSORS not in {dotted(call.func) for call in walk(found[1], ast.Call)}:
        return None
    kept = {node.targets[0].attr for node in walk(found[1], ast.Assign) if isinstance(node.targets[0], ast.Attribute)}
    method = classes.lineage(cls).method("get_quant_method")
    for branch in walk(method[1], ast.If) if method else ():
        if "MoE" in ast.unparse(branch.test) or "RoutedExperts" in ast.unparse(branch.test):
            names = {node.attr for body in branch.body for node in walk(body, ast.Attribute)}
            names |= {str(node.value) for body in branch.body for node in walk(body, ast.Constant)}  # getattr(self, …)
            return bool(kept & names)
    return False


def _empty_is_none(tree: SourceTree, unknown: dict[str, str]) -> bool | None:
    """``quant_method if quant_method != "" else None``."""
    file = tree.config_file("ModelConfig")
    function = tree.function(file, "_verify_quantization") if file else None
    if function is None:
        unknown["quantisation.empty_method_is_none"] = "no _verify_quantization"
        return None
    return any("quant_method" in ast.unparse(node.test) for node in walk(function, ast.IfExp))


def _null_refused(tree: SourceTree) -> bool:
    """``if not quant_method: raise ValueError("Missing 'quant_algo' …")``."""
    module = tree.module(MODELOPT)
    for branch in walk(module, ast.If) if module else ():
        if isinstance(branch.test, ast.UnaryOp) and isinstance(branch.test.op, ast.Not):
            for node in branch.body:
                if isinstance(node, ast.Raise) and "quant_algo" in ast.unparse(node):
                    return True
    return False


def _unquantised_moe(tree: SourceTree) -> tuple[str, ...]:
    function = tree.function(*UNQUANTISED_MOE)
    table = next(walk(function, ast.Dict), None) if function else None
    refuses = function is not None and any(True for _ in walk(function, ast.Raise))
    return tuple(str(literal(key)) for key in table.keys) if table and refuses else ()


def _heeding(tree: SourceTree) -> Iterator[str]:
    """Runners whose drafts get the speculative config's moe_backend: by their own code, or by a table of what the draft
    overrides."""
    text = tree.text(SPECULATIVE) or ""
    table = '("moe_backend", "kernel_config", "moe_backend")' in text
    for runner, folder in FOLDERS.items():
        if table or any(".moe_backend" in (tree.text(file) or "") for file in tree.files(folder)):
            yield runner


def _aliasing(tree: SourceTree) -> Iterator[str]:
    for runner, folder in FOLDERS.items():
        files = [file for file in tree.files(folder) if "gemma4" in file]
        if any("_k_scale" in (tree.text(file) or "") for file in files):
            yield runner
