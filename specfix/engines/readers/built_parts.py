"""What a class builds: the paths of its modules and parameters, by the names of a checkpoint."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from specfix.engines.source.classes import Class, Classes, Lineage
from specfix.engines.source.tree import dotted, walk

LEAVES = "model_executor/layers/"  # the folder of layers that hold weights of their own
FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
ANYTHING = "**"  # of what lies under a path that could not be followed
DEPTH = 6


def own_inits(lineage: Lineage) -> list[ast.AST]:
    """The ``__init__`` of each class that runs, the nearest first."""
    found: list[ast.AST] = []
    for owner in lineage.classes:
        function = owner.members().get("__init__")
        if isinstance(function, ast.FunctionDef):
            found.append(function)
            if "super().__init__(" not in ast.unparse(function):
                break
    return found


def inits(lineage: Lineage) -> Iterator[tuple[Class, ast.FunctionDef]]:
    for owner in lineage.classes:
        function = owner.members().get("__init__")
        if isinstance(function, ast.FunctionDef):
            yield owner, function
            if "super().__init__(" not in ast.unparse(function):
                return


def assigned(lineage: Lineage) -> Iterator[tuple[Class, str, ast.expr]]:
    """What the ``__init__`` that runs, and those that it calls in turn, set on self."""
    for owner, function in inits(lineage):
        for node in walk(function, ast.stmt):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    name = dotted(target) or ""
                    if name.count(".") == 1 and name.startswith("self."):
                        yield owner, name.removeprefix("self."), node.value


def made_classes(classes: Classes, lineage: Lineage, attribute: str) -> Iterator[Class]:
    """The class of ``self.attribute``, where it can be told."""
    for owner, name, value in assigned(lineage):
        if name == attribute and isinstance(value, ast.Call):
            yield from (made for made in _meant(classes, lineage, owner, value) if made)


def parts_of(classes: Classes, lineage: Lineage, prefix: str = "", depth: int = DEPTH) -> set[str]:
    """Paths of all modules and parameters, numbers as ``*``."""
    found: set[str] = set()
    if not lineage.complete or not depth:
        found.add(prefix + ANYTHING)
    for owner, name, value in assigned(lineage):
        for call in made_calls(value):
            path = f"{prefix}{name}"
            kind = (dotted(call.func) or "").rpartition(".")[2]
            if kind in {"ModuleList", "ModuleDict"}:
                elements = [each for argument in call.args for each in _elements(argument)]
                for element in elements:
                    found |= _module(classes, lineage, owner, element, f"{path}.*", depth)
                found |= set() if elements else {f"{path}.{ANYTHING}"}
            else:
                found |= _module(classes, lineage, owner, call, path, depth)
    return found


def _module(classes: Classes, lineage: Lineage, owner: Class, call: ast.Call, path: str, depth: int) -> set[str]:
    made = _meant(classes, lineage, owner, call)
    if not made:  # torch's own, and what is no module at all
        return {path}
    if None in made or len(made) > 1:
        return {f"{path}.{ANYTHING}", path}
    (cls,) = made
    if cls is None or cls.file.startswith(LEAVES):
        return {path}
    inner = parts_of(classes, classes.lineage(cls), f"{path}.", depth - 1)
    return inner or {f"{path}.{ANYTHING}", path}


def _meant(classes: Classes, lineage: Lineage, owner: Class, call: ast.Call) -> list[Class | None]:
    """The classes that a call may make one of. Where a file imports a name and then defines it, its own is meant."""
    own_name = (dotted(call.func) or "").removeprefix("self.")
    bound = lineage.find(own_name) if f"self.{own_name}" == dotted(call.func) else None
    if bound:  # decoder_layer_cls = DecoderLayer
        value = getattr(bound[1], "value", None)
        return classes.of_expression(bound[0].file, value, bound[0].closure) if value else [None]
    made = classes.of_expression(owner.file, call.func, owner.closure)
    own = [cls for cls in made if cls is not None and cls.file == owner.file]
    return list(own) if len(own) == 1 else made


def made_calls(value: ast.expr) -> Iterator[ast.Call]:
    """The constructor calls that a value may be."""
    if isinstance(value, ast.IfExp):
        yield from made_calls(value.body)
        yield from made_calls(value.orelse)
    elif isinstance(value, ast.Call) and not _asks((dotted(value.func) or "").rpartition(".")[2]):
        yield value


def _asks(name: str) -> bool:
    """Whether a function of this name makes no module: it asks for a number, a setting, a rotary table."""
    return name.startswith("get") or hasattr(builtins, name)


def _elements(argument: ast.expr) -> Iterator[ast.Call]:
    if isinstance(argument, ast.ListComp):
        yield from made_calls(argument.elt)
    elif isinstance(argument, ast.DictComp):
        yield from made_calls(argument.value)
    elif isinstance(argument, ast.List):
        for element in argument.elts:
            yield from made_calls(element)


def expanded(parts: set[str]) -> set[str]:
    """With the names that fused layers have in a checkpoint."""
    found = set(parts)
    for part in parts:
        head, _, last = part.rpartition(".")
        found |= {f"{head}.{name}" for name in FUSED.get(last, ())}
    return found


def layer_inits(classes: Classes, lineage: Lineage) -> list[ast.AST]:
    """The ``__init__`` functions of the decoder layers."""
    return [function for made in layer_lineages(classes, lineage) for function in own_inits(made)]


def layer_lineages(classes: Classes, lineage: Lineage) -> Iterator[Lineage]:
    for owner, name, value in assigned(lineage):
        if name == "layers":
            for call in made_calls(value):
                for element in (each for argument in call.args for each in _elements(argument)):
                    for made in _meant(classes, lineage, owner, element):
                        if made:
                            yield classes.lineage(made)
