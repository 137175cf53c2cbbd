"""What a draft's layers take from the config's per-layer lists: a window, and a place beyond the target's layers.

Told by the module that defines the draft's class, and by those from which it takes its layers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.readers.configs import FILE as CONFIGS
from specfix.engines.readers.configs import FOLDER
from specfix.engines.source.imports import imported
from specfix.engines.source.tree import SourceTree, dotted, find_function, literal, walk

MODELS = "model_executor/models"
PACKAGE = "vllm.model_executor.models."
WINDOW = "per_layer_sliding_window"
LIST = "layer_types"
COUNT = "num_hidden_layers"
LAYERS = ("DecoderLayer", "Attention")
HOPS = 4


def read_windowed(tree: SourceTree, methods: MethodFacts) -> dict[str, bool]:
    """Draft architecture to whether its layers' attention is given a window of the layer's own; without those whose
    attention is not found, or that have none."""
    found = ((name, _gives_window(tree, file)) for name, file in _files(methods))
    return {name: gives for name, gives in found if gives is not None}


def read_past_lists(tree: SourceTree, methods: MethodFacts) -> tuple[str, ...]:
    """Architectures of built-in drafts whose layers, numbered on from the target's last, look their number up in the
    config's layer_types, however long that is."""
    return tuple(
        name
        for name, file in _files(methods)
        if _numbers_on(tree.module(file)) and any(_looks_up(tree.module(each)) for each in _layer_files(tree, file))
    )


def read_cut_lists(tree: SourceTree) -> tuple[str, ...]:
    """Model types whose own config class keeps no more of layer_types than num_hidden_layers."""
    cutting = {
        node.name
        for file in tree.files(FOLDER)
        if LIST in (tree.text(file) or "")
        for node in walk(tree.module(file) or ast.Module([], []), ast.ClassDef)
        if _cuts(node)
    }
    found: set[str] = set()
    module = tree.module(CONFIGS)
    for keyword in walk(module, ast.keyword) if module else ():
        name = literal(keyword.value) or dotted(keyword.value)
        if keyword.arg is not None and isinstance(name, str) and name in cutting:
            found.add(keyword.arg)
    return tuple(sorted(found))


def _files(methods: MethodFacts) -> Iterator[tuple[str, str]]:
    for name in methods.drafts:
        module = methods.architectures.get(name, "").partition(":")[0]
        if module and not module.startswith("vllm"):
            yield name, f"{MODELS}/{module.replace('.', '/')}.py"


def _gives_window(tree: SourceTree, file: str, hops: int = HOPS) -> bool | None:
    module = tree.module(file)
    if module is None or not hops:
        return None
    if any(keyword.arg == WINDOW for call in walk(module, ast.Call) for keyword in call.keywords):
        return True
    if any(node.name.endswith("Attention") for node in walk(module, ast.ClassDef)):
        return False
    found = {_gives_window(tree, each, hops - 1) for each in _sources(tree, module)}
    return found.pop() if len(found) == 1 else None


def _sources(tree: SourceTree, module: ast.Module) -> list[str]:
    """Files of models from which the module takes layers, else those from which it takes what its classes extend."""
    bases = {dotted(base) for node in walk(module, ast.ClassDef) for base in node.bases}
    layers: dict[str, None] = {}
    extended: dict[str, None] = {}
    for node in walk(module, ast.ImportFrom):
        inside = node.level == 1 or (node.module or "").startswith(PACKAGE)
        file = f"{MODELS}/{(node.module or '').removeprefix(PACKAGE).replace('.', '/')}.py"
        if not inside or tree.module(file) is None:
            continue
        names = set(imported(node))
        if any(name.endswith(LAYERS) for name in names):
            layers[file] = None
        elif names & bases:
            extended[file] = None
    return [*layers] or [*extended]


def _layer_files(tree: SourceTree, file: str) -> list[str]:
    module = tree.module(file)
    return [file, *_sources(tree, module)] if module else []


def _numbers_on(module: ast.Module | None) -> bool:
    """``self.mtp_start_layer_idx = config.num_hidden_layers``, or a range that starts there."""
    starts = [node.value for node in walk(module, ast.Assign)] if module else []
    starts += [
        call.args[0]
        for call in (walk(module, ast.Call) if module else ())
        if dotted(call.func) == "range" and len(call.args) == 2
    ]
    return any((dotted(start) or "").endswith(f".{COUNT}") for start in starts)


def _looks_up(module: ast.Module | None) -> bool:
    """``config.layer_types[layer_idx]`` in a layer, with no look at the list's length."""
    for node in walk(module, ast.ClassDef) if module else ():
        start = find_function(node, "__init__") if node.name.endswith("DecoderLayer") else None
        for item in walk(start, ast.Subscript) if start else ():
            by_number = (dotted(item.slice) or "").rpartition(".")[2] == "layer_idx"
            if by_number and (dotted(item.value) or "").rpartition(".")[2] == LIST:
                return start is not None and not _looks_at_length(start)
    return False


def _looks_at_length(function: ast.FunctionDef) -> bool:
    return any(
        dotted(call.func) == "len" and call.args and (dotted(call.args[0]) or "").endswith(LIST)
        for call in walk(function, ast.Call)
    )


def _cuts(node: ast.ClassDef) -> bool:
    """``layer_types[: self.num_hidden_layers]``"""
    return any(
        dotted(item.value) == LIST
        and isinstance(item.slice, ast.Slice)
        and item.slice.lower is None
        and item.slice.upper is not None
        and (dotted(item.slice.upper) or "").rpartition(".")[2] == COUNT
        for item in walk(node, ast.Subscript)
    )
