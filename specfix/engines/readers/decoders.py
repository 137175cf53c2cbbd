"""Whole models of plain decoder layers: what their classes build, and which names of a checkpoint they take."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from specfix.engines.facts.drafting import Decoder
from specfix.engines.source.classes import Class, Classes, Lineage
from specfix.engines.source.tree import SourceTree, dotted, walk

FUSED = "QKVParallelLinear"
GATED = "MergedColumnParallelLinear"
LOADER = "AutoWeightsLoader"
SIZES = (
    ("hidden_size", ("hidden_size", "self.hidden_size", "config.hidden_size")),
    ("head_size", ("self.head_dim",)),
    ("total_num_heads", ("self.total_num_heads",)),
    ("total_num_kv_heads", ("self.total_num_kv_heads",)),
)
# what a loader may ask names for: a tied head, tables that old checkpoints hold, quantised ones, tensors that are fused
WORDS = ("lm_head.", "rotary_emb.", "scale", "zero_point", ".bias", "_proj", "weight_loader")


def read_decoder(tree: SourceTree, classes: Classes, path: str) -> Decoder | None:
    """The class at ``path``; None where any of it is built or loaded in a way that is not known here."""
    (cls, *others) = classes.at(path) or [None]
    if cls is None or others:
        return None
    outer = classes.lineage(cls)
    inner = _inner(classes, outer)
    layer = _layer(classes, outer, inner) if inner else None
    if inner is None or layer is None or not (outer.complete and inner.complete and layer.complete):
        return None
    loads = [method[1] for lineage in (outer, inner) if (method := lineage.method("load_weights"))]
    if not loads or LOADER not in ast.unparse(loads[0]) or not _as_many_as_stated(inner):
        return None
    counts = _head_dim(tree, classes, layer)
    dropping = any(_drops(one) for lineage in (outer, inner) for one in lineage.classes)
    strict = all(map(_plain_loading, loads)) and not dropping
    if counts is None:
        return None
    return Decoder(_set_on_self(inner), _set_on_self(layer), counts, strict, beside=_set_on_self(outer))


def _functions(lineage: Lineage, *names: str) -> Iterator[tuple[Class, ast.FunctionDef]]:
    """These methods of each class of the lineage, the nearest first."""
    for owner in lineage.classes:
        for name in names:
            function = owner.members().get(name)
            if isinstance(function, ast.FunctionDef):
                yield owner, function


def _inner(classes: Classes, outer: Lineage) -> Lineage | None:
    """Of ``self.model = Model(…)``, or of what ``self._init_model(…)`` returns."""
    for owner, function in _functions(outer, "_init_model", "__init__"):
        for node in walk(function, ast.stmt):
            returned = isinstance(node, ast.Return) and function.name == "_init_model"
            if not returned and not (isinstance(node, ast.Assign) and dotted(node.targets[0]) == "self.model"):
                continue
            made = getattr(node, "value", None)
            if isinstance(made, ast.Call) and dotted(made.func) != "self._init_model":
                return _only(classes, owner, made.func)
    return None


def _layer(classes: Classes, outer: Lineage, inner: Lineage) -> Lineage | None:
    """The decoder layer: what is given, or stands as default, for a parameter ``…layer_type``, the nearest first; else
    what the inner model names itself."""
    for lineage in (outer, inner):
        for owner, function in _functions(lineage, "__init__", "_init_model"):
            arguments = [*function.args.args, *function.args.kwonlyargs]
            defaults = [*function.args.defaults, *function.args.kw_defaults]
            given = [
                *((k.arg, k.value) for call in walk(function, ast.Call) for k in call.keywords),
                *((a.arg, d) for a, d in zip(arguments[-len(defaults) :], defaults, strict=False) if defaults),
            ]
            for name, value in given:
                if not (name or "").endswith("layer_type") or (name or "").startswith("attn"):
                    continue
                # decoder_layer_type = DecoderLayer
                bound = lineage.find((dotted(value) or "").removeprefix("self.")) if value else None
                if bound is not None and isinstance(bound[1], ast.Assign | ast.AnnAssign) and bound[1].value:
                    return _only(classes, bound[0], bound[1].value)
                if isinstance(value, ast.Name) and value.id.endswith("Layer"):
                    return _only(classes, owner, value)
                if value is not None and not isinstance(value, ast.Name):  # else it is handed on
                    return None
    for owner, call in _made_layers(inner):
        body = call.args[1].body if len(call.args) > 1 and isinstance(call.args[1], ast.Lambda) else None
        if isinstance(body, ast.Call) and isinstance(body.func, ast.Name):
            return _only(classes, owner, body.func)
    return None


def _only(classes: Classes, owner: Class, expression: ast.expr) -> Lineage | None:
    found = classes.of_expression(owner.file, expression, owner.closure)
    return classes.lineage(found[0]) if len(found) == 1 and found[0] is not None else None


def _made_layers(inner: Lineage) -> Iterator[tuple[Class, ast.Call]]:
    for owner, function in _functions(inner, "__init__"):
        for call in walk(function, ast.Call):
            if dotted(call.func) == "make_layers":
                yield owner, call


def _as_many_as_stated(inner: Lineage) -> bool:
    calls = [call for _, call in _made_layers(inner)]
    return len(calls) == 1 and ast.unparse(calls[0].args[0]) in {
        "config.num_hidden_layers",
        "self.config.num_hidden_layers",
    }


def _plain_loading(function: ast.FunctionDef) -> bool:
    """Whether each name must have its place, but for those of WORDS."""
    text = ast.unparse(function)
    if LOADER not in text:
        unknown = [node for node in walk(function, ast.If) if "not in params_dict" in ast.unparse(node.test)]
        if "params_dict[name]" not in text or any("'.bias'" not in ast.unparse(node.test) for node in unknown):
            return False
    if "ignore_unexpected" in text:
        return False
    said = [
        node.value
        for statement in function.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for node in walk(statement, ast.Constant)
        if isinstance(node.value, str)
    ]
    return all(word in ("q", "k", "v") or any(known in word for known in WORDS) for word in said)


def _drops(cls: Class) -> bool:
    """Whether a mapper of the class passes names over: ``{"mtp.": None}``."""
    for keyword in walk(cls.node, ast.keyword):
        if (keyword.arg or "").startswith("orig_to_new"):
            made = keyword.value.values if isinstance(keyword.value, ast.Dict) else [ast.Constant(None)]  # not followed
            if any(isinstance(value, ast.Constant) and value.value is None for value in made):
                return True
    return False


def _set_on_self(lineage: Lineage) -> tuple[str, ...]:
    """Every attribute that the constructors set: more than a checkpoint may hold, never less."""
    found: set[str] = set()
    for _, function in _functions(lineage, "__init__"):
        for node in walk(function, ast.Attribute):
            if isinstance(node.ctx, ast.Store) and dotted(node.value) == "self":
                found.add(node.attr)
    return tuple(sorted(found))


def _head_dim(tree: SourceTree, classes: Classes, layer: Lineage) -> bool | None:
    """Whether head_dim counts where attention is as usual: one size of head, one MLP in each layer."""
    modules = [module for file in dict.fromkeys(one.file for one in layer.classes) if (module := tree.module(file))]
    text = "\n".join(map(_written, modules))
    layers = "\n".join(ast.unparse(function) for _, function in _functions(layer, "__init__"))
    calls = [call for module in modules for call in walk(module, ast.Call)]
    fused = [call for call in calls if dotted(call.func) == FUSED]
    gated = [call for call in calls if dotted(call.func) == GATED] or list(_of_mlp(tree, classes, layer))
    if len(fused) != 1 or not gated or "MoE" in text or "experts" in text:
        return None
    usual = (
        all(_argument(fused[0], place, name) in words for place, (name, words) in enumerate(SIZES))
        and all("[intermediate_size] * 2" in ast.unparse(each) for each in gated)
        and "intermediate_size=config.intermediate_size" in layers
        and "num_heads=config.num_attention_heads" in layers
        and "num_key_value_heads" in layers
        and "self.total_num_heads = num_heads" in text
        and "self.total_num_kv_heads = num_kv_heads" in text
    )
    if not usual:
        return None
    sizes = {
        ast.unparse(node.value)
        for module in modules
        for node in walk(module, ast.Assign)
        if dotted(node.targets[0]) in {"self.head_dim", "head_dim"}
    }
    divided = {"hidden_size // self.total_num_heads", "self.hidden_size // self.total_num_heads"}
    asked = "getattr(config, 'head_dim', None)"
    if sizes <= divided:
        return False
    joined = {asked, "head_dim", *(f"head_dim or {each}" for each in divided)}
    return True if sizes <= divided | joined and asked in text else None


@cache
def _written(module: ast.Module) -> str:
    return ast.unparse(module)


def _of_mlp(tree: SourceTree, classes: Classes, layer: Lineage) -> Iterator[ast.Call]:
    """Of an MLP that the layer's file imports."""
    for owner, function in _functions(layer, "__init__"):
        for node in walk(function, ast.Assign):
            if dotted(node.targets[0]) == "self.mlp" and isinstance(node.value, ast.Call):
                made = _only(classes, owner, node.value.func)
                for one in made.classes if made else ():
                    yield from (call for call in walk(one.node, ast.Call) if dotted(call.func) == GATED)


def _argument(call: ast.Call, place: int, name: str) -> str:
    for keyword in call.keywords:
        if keyword.arg == name:
            return ast.unparse(keyword.value)
    return ast.unparse(call.args[place]) if place < len(call.args) else ""
