"""What the classes of drafting heads build, and what they make of a checkpoint."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from specfix.engines.facts.drafting import Head
from specfix.engines.readers.aux import fc_states
from specfix.engines.readers.built_parts import (
    assigned,
    expanded,
    inits,
    layer_inits,
    layer_lineages,
    made_calls,
    made_classes,
    own_inits,
    parts_of,
)
from specfix.engines.readers.renames import hands_on, read_renames
from specfix.engines.source.classes import Classes, Lineage
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

# keys of a draft's config that change what is built, where a class names them
KEYS = (
    "attention_bias",
    "bias",
    "draft_vocab_size",
    "fc_norm",
    "head_dim",
    "norm_before_fc",
    "norm_output",
    "num_hidden_layers",
    "qkv_bias",
    "target_hidden_size",
)
MAPPING = "draft_id_to_target_id"
KNOWN = re.compile(r"name (not )?in params(?:_dict)?")
LOADER = "model_executor/model_loader/default_loader.py"


def read_head(classes: Classes, path: str) -> Head | None:
    """The draft class at ``path``; None where it loads its weights in another way than these heads do."""
    (cls, *others) = classes.at(path) or [None]
    lineage = None if cls is None or others else classes.lineage(cls)
    loading = lineage.method("load_weights") if lineage else None
    if lineage is None or loading is None:
        return None
    text = ast.unparse(loading[1])
    if "'model.' + name" not in text or "'lm_head' not in name" not in text:
        return None
    inner = next((made for made in made_classes(classes, lineage, "model")), None)
    if inner is None:
        return None
    found = classes.lineage(inner)
    sources = [*own_inits(lineage), *own_inits(found), *layer_inits(classes, found)]
    named = {constant for source in sources for constant in _named(source)}
    renames = read_renames(lineage, found)
    own = {name for name in ("lm_head", "embed_tokens") if "process_eagle_weight" in text}
    return Head(
        parts=tuple(sorted({*expanded(parts_of(classes, found)), *_outer(lineage)})),
        layers=_layers(found),
        doubled=any("2 * self.hidden_size" in ast.unparse(source) for source in layer_inits(classes, found)),
        keys=tuple(key for key in KEYS if key in named),
        mapping=_mapping(lineage),
        notes_own=tuple(sorted(own)),
        skipped=tuple(sorted(renames.dropped | {word for word in _skipped(loading[1]) if word != "None"})),
        renames=renames.parts,
        prefixes=renames.prefixes,
        patterns=renames.patterns,
        renames_unread=renames.unread,
        fc_ids=_fc_ids(classes, found),
        fc_states=fc_states(found) or (),
        fc_bias=_fc_bias(found),
        qkv_bias=_qkv_bias(layer_inits(classes, found)),
        demands=tuple(sorted(_demands(loading[1]))),
        passes_bias=passes_bias(classes, found, loading[1]),
        passes_unknown=passes_unknown(found, loading[1]),
        scaled_by=_scaled_by(lineage),
        biases=_biases(list(layer_lineages(classes, found))),
    )


def _scaled_by(outer: Lineage) -> str | None:
    """``LogitsProcessor(…, scale=logit_scale)``, where that is ``getattr(config, "logit_scale", 1.0)``."""
    for _, function in inits(outer):
        asked = {
            dotted(node.targets[0]): literal(node.value.args[1])
            for node in walk(function, ast.Assign)
            if isinstance(node.value, ast.Call) and dotted(node.value.func) == "getattr"
            if len(node.value.args) == 3 and literal(node.value.args[2]) == 1.0
        }
        for call in walk(function, ast.Call):
            scale = next((dotted(each.value) for each in call.keywords if each.arg == "scale"), None)
            if dotted(call.func) == "LogitsProcessor" and scale in asked:
                return str(asked[scale])
    return None


def passes_bias(classes: Classes, inner: Lineage, outer: ast.FunctionDef) -> bool:
    """Whether a bias without a place is passed over: by the inner model's loop over its parameters, or by
    ``AutoWeightsLoader``, where that does so of itself."""
    loading = inner.method("load_weights")
    text = ast.unparse(loading[1] if loading else outer)
    if "AutoWeightsLoader(" not in text:
        return "name.endswith('.bias') and name not in params_dict" in text
    (loader,) = classes.at("vllm.model_executor.models.utils:AutoWeightsLoader") or [None]
    return loader is not None and "ignore_unexpected_suffixes.append('.bias')" in ast.unparse(loader.node)


def passes_unknown(inner: Lineage, outer: ast.FunctionDef) -> bool:
    """``if name not in params_dict: continue`` in the inner model's own loop over what it is to load; where the class
    fills the parameters itself, ``if name in params:``, and nothing else."""
    loading = inner.method("load_weights")
    function = loading[1] if loading and hands_on(outer) else outer
    for block in (block for loop in walk(function, ast.For) for block in (loop.body, loop.orelse)):
        for branch in block:
            asked = KNOWN.fullmatch(ast.unparse(branch.test)) if isinstance(branch, ast.If) else None
            if asked is None or not isinstance(branch, ast.If):
                continue
            if isinstance(branch.body[0], ast.Continue) if asked[1] else branch is block[-1] and not branch.orelse:
                return True
    return False


def _outer(lineage: Lineage) -> set[str]:
    """What stands beside the inner model."""
    return {name for _, name, value in assigned(lineage) if name == "lm_head" and isinstance(value, ast.Call)}


def _layers(lineage: Lineage) -> Literal["config", "one"] | None:
    """ "config" where as many layers are built as num_hidden_layers says, "one" where always one is."""
    for _, name, value in assigned(lineage):
        if name == "layers" and isinstance(value, ast.Call) and value.args:
            if isinstance(value.args[0], ast.ListComp):
                return "config" if "num_hidden_layers" in ast.unparse(value.args[0].generators[0].iter) else None
            return "one" if isinstance(value.args[0], ast.List) and len(value.args[0].elts) == 1 else None
    return None


def _named(source: ast.AST) -> Iterator[str]:
    """Keys that a function asks a config for: ``getattr(config, "key")``, ``block.get("key")``, ``config.key``."""
    for call in walk(source, ast.Call):
        for argument in call.args[:2]:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value
    for node in walk(source, ast.Attribute):
        if (dotted(node.value) or "").rpartition(".")[2].endswith("config"):
            yield node.attr


def _mapping(lineage: Lineage) -> Literal["always", "other size", "smaller"] | None:
    """When the class has a place for the map of a reduced vocabulary."""
    for _, function in inits(lineage):
        for node in function.body:
            if isinstance(node, ast.If) and MAPPING in ast.unparse(node) and isinstance(node.test, ast.Compare):
                left = ast.unparse(node.test.left)
                if left.endswith("draft_vocab_size") and "target_vocab_size" in ast.unparse(node.test.comparators[0]):
                    if isinstance(node.test.ops[0], ast.NotEq):
                        return "other size"
                    if isinstance(node.test.ops[0], ast.Lt):
                        return "smaller"
                return None
            if isinstance(node, ast.Assign) and dotted(node.targets[0]) == f"self.{MAPPING}":
                return None if literal(node.value) is None and isinstance(node.value, ast.Constant) else "always"
    return None


def _skipped(function: ast.FunctionDef) -> Iterator[str]:
    """Words of names that are passed over: ``if "t2d" in name: continue``, ``if name == "t2d": continue``,
    ``skip_substrs=["t2d"]``, ``skip_substrs.append("t2d")``, ``substrings["t2d"] = None``,
    ``orig_to_new_substr={"model.t2d": None}``. Some of them under a condition only."""
    for keyword in walk(function, ast.keyword):
        if (keyword.arg or "").startswith("orig_to_new") and isinstance(value := literal(keyword.value), dict):
            yield from (str(word).removeprefix("model.") for word, new in value.items() if new is None)
    for call in walk(function, ast.Call):
        if (dotted(call.func) or "").endswith("skip_substrs.append"):
            yield str(literal(call.args[0]))
    for node in walk(function, ast.stmt):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        value = literal(node.value)
        if isinstance(target, ast.Subscript) and isinstance(node.value, ast.Constant) and value is None:
            yield str(literal(target.slice))
        elif isinstance(value, list | dict) and ("skip" in ast.unparse(target) or "substr" in ast.unparse(target)):
            yield from (str(word) for word in value)
    for node in walk(function, ast.If):
        if any(isinstance(each, ast.Continue) for each in node.body):
            for test in walk(node.test, ast.Compare):
                sides = {ast.In: test.left, ast.Eq: test.comparators[0]}
                if isinstance(word := literal(sides.get(type(test.ops[0]))), str):
                    yield word


def _demands(function: ast.FunctionDef) -> Iterator[str]:
    """What a checkpoint of a reduced vocabulary must hold, else the start ends: "lm_head", "d2t"."""
    flags = {"includes_lm_head": "lm_head", "includes_draft_id_mapping": "d2t"}
    for node in walk(function, ast.If):
        if any(isinstance(each, ast.Raise) for each in node.body) and "reduced_vocab" in ast.unparse(node.test):
            yield from (flags[name.id] for name in walk(node.test, ast.Name) if name.id in flags)


def _fc_ids(classes: Classes, lineage: Lineage) -> tuple[str, ...]:
    """Keys of ``eagle_config`` or ``dflash_config`` whose list says how many states ``fc`` takes, in the order in which
    they count; the number of the draft's own layers is the last resort. ``*``: what the runner takes."""
    for owner, name, value in assigned(lineage):
        for call in walk(value, ast.Call) if name == "fc" else ():
            sized = classes.function(owner.file, call.func.id) if isinstance(call.func, ast.Name) else None
            if sized and "aux_layers_from_config" in ast.unparse(sized) and "num_hidden_layers" in ast.unparse(sized):
                return ("*",)
    for _, function in inits(lineage):
        found = [
            str(literal(test.left))
            for node in walk(function, ast.If)
            if "num_features" in ast.unparse(node)
            for test in [node.test]
            if isinstance(test, ast.Compare)
            and isinstance(test.ops[0], ast.In)
            and isinstance(literal(test.left), str)
            and any("len(" in ast.unparse(each) for each in node.body)
        ]
        if found:
            return tuple(dict.fromkeys(found))
    return ()


def _fc_bias(lineage: Lineage) -> bool | None:
    """Whether ``fc`` has a bias: as its call says."""
    calls = [call for _, name, value in assigned(lineage) if name == "fc" for call in made_calls(value)]
    said = {literal(keyword.value) for call in calls for keyword in call.keywords if keyword.arg == "bias"}
    (only,) = said if len(said) == 1 else (None,)
    return only if isinstance(only, bool) else None


def _qkv_bias(layers: list[ast.AST]) -> Literal["attention_bias", "never"] | None:
    """The key that gives a layer's own ``qkv_proj`` its bias; "never" where it has none."""
    for function in layers:
        assigned = {
            target.id: ast.unparse(node.value)
            for node in walk(function, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call in walk(function, ast.Call):
            given = next((k.value for k in call.keywords if k.arg == "bias"), None)
            if (dotted(call.func) or "") == "QKVParallelLinear" and given is not None:
                said = assigned.get(ast.unparse(given), ast.unparse(given))
                asks = said == "getattr(config, 'attention_bias', False)"
                return "attention_bias" if asks else "never" if said == "False" else None
    return None


def _biases(layers: list[Lineage]) -> dict[str, tuple[str, ...]]:
    """Part of a layer to the keys of which any gives it a bias: ``Attention(…, bias_o_proj=bias)`` after ``bias =
    getattr(config, "attention_bias", False)``, ``MLP(…, bias=getattr(config, "mlp_bias", False))``. Only of layers of
    one class, and where nothing hangs on a condition."""
    found: dict[str, tuple[str, ...] | None] = {}
    for function in own_inits(layers[0]) if len(layers) == 1 else ():
        asked: dict[str, tuple[str, ...] | None] = {}
        made: dict[str, tuple[str, ...] | None] = {}
        for statement in getattr(function, "body", ()):
            sure = isinstance(statement, ast.Assign)
            for node in walk(statement, ast.Assign):
                name = dotted(node.targets[0]) or ""
                if "." not in name:
                    asked[name] = _asked(node.value, asked) if sure else None
                given = {keyword.arg: keyword.value for keyword in getattr(node.value, "keywords", ())}
                for attribute, part, argument in PARTS_WITH_BIAS:
                    if name in {attribute, f"self.{part}"}:
                        value = given.get(argument)
                        made[part] = _asked(value, asked) if sure and value and name == attribute else None
        found = made | found  # the nearest class counts
    return {part: keys for part, keys in sorted(found.items()) if keys is not None}


PARTS_WITH_BIAS = (("self.self_attn", "self_attn.o_proj", "bias_o_proj"), ("self.mlp", "mlp", "bias"))


def _asked(value: ast.expr, named: dict[str, tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Keys of which any that is true makes ``value`` true; None where it hangs on anything else."""
    if isinstance(value, ast.Name):
        return named.get(value.id)
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or):
        parts = [_asked(part, named) for part in value.values]
        return None if None in parts else tuple(key for part in parts for key in part or ())
    if isinstance(value, ast.Constant) and value.value is False:
        return ()
    if isinstance(value, ast.Call) and dotted(value.func) == "getattr" and len(value.args) == 3:
        key, default = (literal(argument) for argument in value.args[1:])
        return (key,) if isinstance(key, str) and default is False else None
    return None


def refuses_missing(classes: Classes, path: str) -> bool:
    """Whether the class refuses a checkpoint that is without one of the layers that it builds:
    ``if layer not in loaded_layers: raise``."""
    for cls in classes.at(path):
        loading = classes.lineage(cls).method("load_weights") if cls else None
        for node in walk(loading[1], ast.If) if loading else ():
            tests = [test.ops[0] for test in walk(node.test, ast.Compare)]
            if any(isinstance(op, ast.NotIn) for op in tests) and "loaded_layers" in ast.unparse(node.test):
                return any(isinstance(each, ast.Raise) for each in node.body)
    return False


def strict_loader(tree: SourceTree) -> bool:
    """Whether a parameter that no tensor fills ends the start, embeddings and heads not spared: of unquantised models,
    whose classes say what they have loaded."""
    function = tree.function(LOADER, "load_weights")
    other = tree.function(LOADER, "track_weights_loading")
    text = "".join(ast.unparse(each) for each in (function, other) if each)
    return "weights_to_load - loaded_weights" in text and "process_weights_after_loading" not in text


def load_keys(tree: SourceTree) -> tuple[str, ...] | None:
    """The keys that ``model_loader_extra_config`` may have: ``allowed_keys = {…}``; none where any is refused."""
    function = tree.function(LOADER, "DefaultModelLoader.__init__")
    for node in walk(function, ast.stmt) if function else ():
        if isinstance(node, ast.Assign) and dotted(node.targets[0]) == "allowed_keys":
            allowed = literal(node.value)
            return tuple(sorted(map(str, allowed))) if isinstance(allowed, set) else None
        if isinstance(node, ast.If) and ast.unparse(node.test) == "load_config.model_loader_extra_config":
            return () if isinstance(node.body[0], ast.Raise) else None
    return None


def built_beside(classes: Classes, path: str) -> tuple[str, ...]:
    """What a built-in draft builds that is the target's as well, and that only its own layers' tensors fill."""
    for cls in classes.at(path):
        loading = classes.lineage(cls).method("load_weights") if cls else None
        if cls is None or loading is None:
            return ()
        text = ast.unparse(loading[1])
        rewriting = classes.lineage(cls).method("_rewrite_spec_layer_name")
        # every other tensor is passed over, and none is renamed before
        only_own = "_remap" not in text and any(
            ast.unparse(node.test) == "spec_layer is None" and isinstance(node.body[0], ast.Continue)
            for node in walk(loading[1], ast.If)
        )
        if "return loaded_params" not in text or not only_own or rewriting is None or "'lm_head.weight'" in text:
            return ()
        inner = next(made_classes(classes, classes.lineage(cls), "model"), None)
        parts = parts_of(classes, classes.lineage(inner)) if inner else set()
        named = {"embed_tokens": "embed_tokens", "shared_head.head": "layers.*.shared_head.head"}
        return tuple(name for name, part in named.items() if part in parts)
    return ()
