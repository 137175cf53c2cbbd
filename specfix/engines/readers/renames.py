"""What a draft's class makes of a checkpoint's names before it looks for their places."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from specfix.engines.source.classes import Lineage
from specfix.engines.source.tree import dotted, literal, walk

LOADING: Final = "load_weights"
SCALES: Final = "maybe_remap_kv_scale_name"  # of names that have a place of their own, or none that counts
LONGEST: Final = 200  # of a pattern
# one character at a time, and looks around: without repetition and groups a search takes linear time, whatever the name
_ITEM = r"(?:[\w.-]|\\[bBdDsSwW.*+?^$|()\[\]{}\\/-]|\[\^?[\w-]+\])"
_SAFE = re.compile(rf"(?:\(\?<?[=!](?:{_ITEM}|[|^$])*\)|{_ITEM}|[\^$])+")


@dataclass(slots=True)
class Renames:
    """As in Head. ``dropped``: words of names that are passed over."""

    parts: dict[str, str] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    patterns: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    unread: bool = False


def hands_on(outer: ast.FunctionDef) -> bool:
    """Whether the class leaves the loading to its inner model, instead of filling the parameters itself."""
    text = ast.unparse(outer)
    return "AutoWeightsLoader(" in text or f"self.model.{LOADING}(" in text


def read_renames(outer: Lineage, inner: Lineage) -> Renames:
    """Of the loading that runs: names go through the outer class, and then through the inner model."""
    found = Renames()
    functions = _functions(outer)
    for function in functions:
        found.unread |= any(not _known(value, outer, outer=True) for value in _names(function)) or _maps(function)
    if functions and not hands_on(functions[0]):
        return found
    for function in _functions(inner):
        for value in _names(function):
            found.unread |= not _known(value, inner)
        _replaced(function, found)
        for mapper in _mappers(inner, function):
            _mapped(mapper, found)
    return found


def _functions(lineage: Lineage) -> list[ast.FunctionDef]:
    """``load_weights``, and the methods that it calls."""
    loading = lineage.method(LOADING)
    if loading is None:
        return []
    return [loading[1], *(method for call in walk(loading[1], ast.Call) if (method := _method(lineage, call)))]


def _method(lineage: Lineage, call: ast.Call) -> ast.FunctionDef | None:
    """Of ``self.method(…)``."""
    home, _, name = (dotted(call.func) or "").rpartition(".")
    found = lineage.method(name) if home == "self" else None
    return found[1] if found else None


def _names(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What is assigned to ``name``, or to those names that are assigned to it (``name = name_mapped``), and what pairs
    are made of it: ``(name + "s", weight)``."""
    made = [
        (each.id, node.value)
        for node in walk(function, ast.Assign)
        for target in node.targets
        for each in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(each, ast.Name)
    ]
    meant = {"name", *(value.id for target, value in made if target == "name" and isinstance(value, ast.Name))}
    yield from (value for target, value in made if target in meant)
    for pair in walk(function, ast.Tuple):
        if len(pair.elts) == 2 and any(each.id in meant for each in walk(pair.elts[0], ast.Name)):
            yield pair.elts[0]


def _known(value: ast.expr, lineage: Lineage, *, outer: bool = False) -> bool:
    """Whether it is known what becomes of a name: the outer class puts ``model.`` before it, and takes ``d2t`` by
    another; the names of fused layers, which a loop replaces, are no renames. Of a method's pairs it is seen there."""
    if isinstance(value, ast.Call):
        arguments = [literal(each) for each in value.args]
        if dotted(value.func) == "name.replace" and all(isinstance(each, ast.Name) for each in value.args):
            return True
        if (method := _method(lineage, value)) is not None:
            return any(isinstance(node.value, ast.Tuple) for node in walk(method, ast.Return))
        plain = dotted(value.func) in {"name.replace", "name.removeprefix"}
        return dotted(value.func) == SCALES or (plain and all(isinstance(each, str) for each in arguments))
    if outer and isinstance(value, ast.BinOp):
        return ast.unparse(value) == "'model.' + name"
    return isinstance(value, ast.Name) or (outer and isinstance(value, ast.Constant))


def _maps(outer: ast.FunctionDef) -> bool:
    """Whether the outer class has a mapper of its own that gives new names, besides those of fused layers."""
    given = [each.value for each in walk(outer, ast.keyword) if (each.arg or "").startswith("orig_to_new")]
    return any(
        literal(new) is not None
        for pairs in given
        for new in (pairs.values if isinstance(pairs, ast.Dict) else ())
        if not isinstance(new, ast.Tuple)
    )


def _replaced(function: ast.FunctionDef, found: Renames) -> None:
    """``name.replace("midlayer.", "layers.0.")``, ``name.removeprefix("model.")``."""
    for call in walk(function, ast.Call):
        match (dotted(call.func), [literal(argument) for argument in call.args]):
            case "name.replace", [str(old), str(new)]:
                found.parts[old] = new
            case "name.removeprefix", [str(old)]:
                found.prefixes[old] = ""


def _mappers(lineage: Lineage, function: ast.FunctionDef) -> Iterator[ast.expr | None]:
    """The mappers that are given on, or applied; None for one that cannot be found."""
    for call in walk(function, ast.Call):
        used = [keyword.value for keyword in call.keywords if keyword.arg == "mapper"]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "apply":
            used.append(call.func.value)
        for each in used:
            asked = dotted(each.func) if isinstance(each, ast.Call) else dotted(each)
            if (asked or "").endswith(".get_cache_scale_mapper"):
                continue
            home, _, attribute = (asked or "").rpartition(".")
            bound = lineage.find(attribute) if home == "self" else None
            yield each if isinstance(each, ast.Call) else getattr(bound[1], "value", None) if bound else None


def _mapped(mapper: ast.expr | None, found: Renames) -> None:
    """``WeightsMapper(orig_to_new_prefix={"model.": ""}, …)``; None as a new name passes it over."""
    if not isinstance(mapper, ast.Call) or dotted(mapper.func) != "WeightsMapper" or mapper.args:
        found.unread = True
        return
    for keyword in mapper.keywords:
        kind, pairs = (keyword.arg or "").removeprefix("orig_to_new_"), keyword.value
        if kind == "stacked":  # names of fused layers
            continue
        if not isinstance(pairs, ast.Dict):
            found.unread = True
            continue
        for key, value in zip(pairs.keys, pairs.values, strict=True):
            old, new = _pattern(key) if kind == "regex" else literal(key), literal(value)
            drops = isinstance(value, ast.Constant) and value.value is None
            home = {"regex": found.patterns, "substr": found.parts, "prefix": found.prefixes}.get(kind)
            if isinstance(old, str) and isinstance(new, str) and home is not None and "\\" not in new:
                home[old] = new
            elif isinstance(old, str) and drops and kind in {"substr", "prefix"}:
                found.dropped.add(old)
            else:
                found.unread = True


def _pattern(key: ast.expr | None) -> str | None:
    """``re.compile("…")``, where it can be carried: what it looks for is searched in anybody's names."""
    if not isinstance(key, ast.Call) or dotted(key.func) != "re.compile" or len(key.args) != 1 or key.keywords:
        return None
    text = literal(key.args[0])
    if not isinstance(text, str) or len(text) > LONGEST or not _SAFE.fullmatch(text):
        return None
    try:
        re.compile(text)
    except re.error:
        return None
    return text
