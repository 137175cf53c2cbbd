"""Read how many rows a release gives a rotary table: ``get_rope`` and the classes that it chooses from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast, get_args

from specfix.engines.facts.drafting import RopeFacts, Rows
from specfix.engines.readers.rope_types import read_sections, read_type_pairs
from specfix.engines.source.classes import Classes, Lineage
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

FILES = ("model_executor/layers/rotary_embedding/__init__.py", "model_executor/layers/rotary_embedding.py")
TYPE = "scaling_type"
SHARE = "partial_rotary_factor"
CACHE = "_compute_cos_sin_cache"
POSITIONS = 2  # third argument of every rotary class: the positions
KNOWN = frozenset(get_args(Rows)) - {"other"}


@dataclass(frozen=True, slots=True)
class _Made:
    """A rotary class made for some types; ``key`` is the config key whose presence chooses it, ``local`` the values
    of get_rope's variables there."""

    types: tuple[str, ...]
    key: str | None
    call: ast.Call
    classes: tuple[str, ...]
    local: dict[str, ast.expr]


def read_rope(tree: SourceTree, unknown: dict[str, str]) -> RopeFacts:
    file = next((file for file in FILES if tree.function(file, "get_rope")), None)
    function = tree.function(file, "get_rope") if file else None
    if file is None or function is None:
        facts = ("rope.rows", "rope.mrope", "rope.needed", "rope.types", "rope.type_pairs")
        unknown |= dict.fromkeys(facts, f"no get_rope in {FILES[0]}")
        return RopeFacts(None, None)
    classes = Classes(tree)
    rows: dict[str, Rows] = {}
    fractions: set[str] = set()
    for made in _made(function.body, ("default",), None, {}, {}):
        if any(_fractions_only(classes, file, name) for name in made.classes):
            fractions |= set(made.types)
        rules = {_rule(classes, file, name, made) for name in made.classes}
        rule = rules.pop() if len(rules) == 1 else "other"
        for rope_type in made.types:
            rows.setdefault(f"{rope_type}+{made.key}" if made.key else rope_type, rule)
    for name in sorted(rows):  # a type with no else branch: the key that is not an oddity of one model family
        rope_type, _, key = name.partition("+")
        if key == "factor":
            rows.setdefault(rope_type, rows[name])
    for name in (name for name, rule in rows.items() if rule == "other"):
        unknown[f"rope.rows.{name}"] = "the class sizes its table in no way that is known"
    mrope = rows.get("default+mrope_section")
    if mrope is None:
        unknown["rope.mrope"] = "get_rope has no branch for mrope_section"
    needed = dict(sorted(_needed(function).items()))
    bounded = _bounds_share(function)
    types = _types(function)
    if types is None:
        unknown["rope.types"] = "get_rope refuses no type"
    pairs, sections = read_type_pairs(tree), read_sections(tree)
    if pairs is None:
        unknown["rope.type_pairs"] = "no older type of RoPE is held against the newer one"
    fractions_only = tuple(sorted(fractions))
    return RopeFacts(dict(sorted(rows.items())), mrope, needed, bounded, fractions_only, types, pairs, sections)


def _types(function: ast.FunctionDef) -> tuple[str, ...] | None:
    """All types that are asked for, where another is refused: ``raise ValueError(f"… {scaling_type}")``."""
    if not any(TYPE in ast.unparse(node) for node in walk(function, ast.Raise)):
        return None
    return tuple(sorted({each for node in walk(function, ast.If) for each in _tested(node.test)[0]}))


def _fractions_only(classes: Classes, file: str, name: str) -> bool:
    """``if isinstance(scaling_factors, float): scaling_factors = [scaling_factors]``, and an int stays what it is."""
    found = [cls for cls in classes.named(file, name) if cls is not None]
    init = classes.lineage(found[0]).method("__init__") if len(found) == 1 else None
    return init is not None and any(
        ast.unparse(node) == "if isinstance(scaling_factors, float):\n    scaling_factors = [scaling_factors]"
        for node in walk(init[1], ast.If)
    )


def _bounds_share(function: ast.FunctionDef) -> bool:
    """``if partial_rotary_factor <= 0.0 or partial_rotary_factor > 1.0: raise``."""
    return any(
        ast.unparse(node.test) == f"{SHARE} <= 0.0 or {SHARE} > 1.0" and isinstance(node.body[0], ast.Raise)
        for node in walk(function, ast.If)
    )


def _needed(function: ast.FunctionDef) -> dict[str, tuple[str, ...]]:
    """By rope type, the keys that are taken from the parameters as ``parameters["key"]``."""
    needed: dict[str, tuple[str, ...]] = {}
    for node in walk(function, ast.If):
        types, _ = _tested(node.test)
        keys = [key for statement in node.body if not isinstance(statement, ast.If) for key in _taken(statement)]
        keys += [one for statement in node.body if isinstance(statement, ast.If) and (one := _one_of(statement))]
        for rope_type in types if keys else ():
            needed.setdefault(rope_type, tuple(dict.fromkeys(keys)))
    return needed


def _taken(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Subscript):
        key = _key(statement.value)
        if isinstance(key, str):
            yield key


def _one_of(node: ast.If) -> str | None:
    """``if "a" in parameters: … elif "b" in parameters: … else: raise``, as "a|b"."""
    keys: list[str] = []
    while True:
        _, key = _tested(node.test)
        if key is None or not node.orelse:
            return None
        keys.append(key)
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            node = node.orelse[0]
            continue
        return "|".join(keys) if isinstance(node.orelse[0], ast.Raise) else None


def _made(
    body: list[ast.stmt],
    types: tuple[str, ...],
    key: str | None,
    names: dict[str, tuple[str, ...]],
    local: dict[str, ast.expr],
) -> Iterator[_Made]:
    """The classes made in the chain of tests of the rope type."""
    for position, node in enumerate(body):
        if isinstance(node, ast.If):
            tested, inner_key = _tested(node.test)
            if inner_key and not any(_makes(call, names) for call in walk(node, ast.Call)):
                rest = body[position + 1 :]  # the key chooses values, and the class is made of them below
                yield from _made([*node.body, *rest], types, inner_key, names, dict(local))
                yield from _made([*node.orelse, *rest], types, key, names, dict(local))
                return
            if tested or inner_key:
                yield from _made(node.body, tested or types, inner_key if not tested else None, names, dict(local))
                yield from _made(node.orelse, types, key, names, dict(local))
            elif _chooses_class(node):
                pair = [
                    a.value.id
                    for b in (node.body, node.orelse)
                    for a in b
                    if isinstance(a, ast.Assign) and isinstance(a.value, ast.Name)
                ]
                names[_target(node)] = tuple(pair)
            else:  # dual chunk attention, "no parameters at all"
                yield from _made(node.orelse, types, key, names, dict(local))
                if not any(isinstance(inner, ast.Return) for inner in node.body) and _negated(node.test):
                    yield from _made(node.body, types, key, names, dict(local))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _makes(node.value, names):
            name = dotted(node.value.func) or ""
            yield _Made(types, key, node.value, names.get(name, (name,)), dict(local))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            local[node.targets[0].id] = node.value


def _makes(call: ast.Call, names: dict[str, tuple[str, ...]]) -> bool:
    return isinstance(call.func, ast.Name) and (call.func.id in names or "Embedding" in call.func.id)


def _tested(test: ast.expr) -> tuple[tuple[str, ...], str | None]:
    """The rope types that a test compares with, or the key of the parameters that it asks for."""
    for node in walk(test, ast.Compare):
        left, right = node.left, literal(node.comparators[0])
        if dotted(left) == TYPE and isinstance(node.ops[0], ast.Eq) and isinstance(right, str):
            return (right,), None
        if dotted(left) == TYPE and isinstance(node.ops[0], ast.In) and isinstance(right, list | tuple | set):
            return tuple(map(str, right)), None
        if isinstance(node.ops[0], ast.In) and isinstance(literal(left), str):
            return (), str(literal(left))
    return (), None


def _negated(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _chooses_class(node: ast.If) -> bool:
    return bool(_target(node)) and bool(node.orelse)


def _target(node: ast.If) -> str:
    first = node.body[0]
    if isinstance(first, ast.Assign) and isinstance(first.value, ast.Name) and isinstance(first.targets[0], ast.Name):
        return first.targets[0].id
    return ""


def _rule(classes: Classes, file: str, name: str, made: _Made) -> Rows:
    found = [cls for cls in classes.named(file, name) if cls is not None]
    base = _positions(made.call.args[POSITIONS], made.local) if len(made.call.args) > POSITIONS else None
    if len(found) != 1 or base is None:
        return "other"
    lineage = classes.lineage(found[0])
    passes_factor = any(keyword.arg == "scaling_factor" for keyword in made.call.keywords)
    scale, widened = _cache_scale(classes, lineage, passes_factor), _widened(lineage)
    if scale is None or widened is None:
        return "other"
    factor = made.local.get("scaling_factor")
    if "factor" in scale and factor is not None and _key(factor) != "factor":  # no factor of the config's
        if not (isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Div)):
            return "other"
        if _positions(factor.right, made.local) != base:
            return "other"
        base = _positions(factor.left, made.local) or "?"
        scale = [part for part in scale if part != "factor"]
    rule = "*".join([base, *scale, *widened])
    return cast("Rows", rule) if rule in KNOWN else "other"


def _positions(node: ast.expr, local: dict[str, ast.expr]) -> str | None:
    """Whether an argument is the config's positions or its original ones."""
    if isinstance(node, ast.Name) and node.id in local:
        return _positions(local[node.id], local)
    if _key(node) == "original_max_position_embeddings" or dotted(node) == "original_max_position":
        return "original"
    return "max_position" if dotted(node) == "max_position" else None


def _key(node: ast.expr) -> object:
    """The key of ``rope_parameters["key"]``."""
    return literal(node.slice) if isinstance(node, ast.Subscript) else None


def _cache_scale(classes: Classes, lineage: Lineage, passes_factor: bool) -> list[str] | None:
    """What the cache multiplies the class's own positions with: [] or ["factor"]."""
    found = lineage.method(CACHE)
    if found is None:
        return None
    owner, function = found
    local = {t.id: a.value for a in walk(function, ast.Assign) for t in a.targets if isinstance(t, ast.Name)}
    for call in walk(function, ast.Call):
        if (dotted(call.func) or "").endswith(".arange") and call.args:
            return _product(call.args[0], local) if len(function.args.args) == 1 else _two_tables(lineage)
    # no table of its own: with a factor it borrows another class's, without it its base's
    borrowed = [
        dotted(call.func) or "" for call in walk(function, ast.Call) if (dotted(call.func) or "").endswith(CACHE)
    ]
    named = next((name.rpartition(".")[0] for name in borrowed if name.count(".") == 1), None)
    if passes_factor and named:
        others = [cls for cls in classes.named(owner.file, named) if cls is not None]
        return _cache_scale(classes, classes.lineage(others[0]), False) if len(others) == 1 else None
    rest = lineage.classes[lineage.classes.index(owner) + 1 :]
    return _cache_scale(classes, Lineage(rest, lineage.complete), False) if rest else None


def _two_tables(lineage: Lineage) -> list[str] | None:
    """[] where a table for the original positions is followed by one for all, which is read behind the first."""
    init, forward = lineage.method("__init__"), lineage.method("forward")
    tables = {
        target.id: dotted(node.value.args[0])
        for node in (walk(init[1], ast.Assign) if init else ())
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Call) and node.value.args
        if dotted(node.value.func) == f"self.{CACHE}"
    }
    joined = [
        [tables.get(dotted(part) or "") for part in call.args[0].elts]
        for call in (walk(init[1], ast.Call) if init else ())
        if dotted(call.func) == "torch.cat" and isinstance(call.args[0], ast.List)
    ]
    behind = {
        dotted(call.args[1])
        for call in (walk(forward[1], ast.Call) if forward else ())
        if dotted(call.func) == "torch.full_like" and len(call.args) == 2
    }
    first = {
        dotted(target)
        for node in (walk(forward[1], ast.Assign) if forward else ())
        for target in node.targets
        if dotted(node.value) == "self.original_max_position_embeddings"
    }
    plain = joined == [["original_max_position_embeddings", "max_position_embeddings"]]
    return [] if plain and len(behind) == 1 and behind <= first else None


def _product(node: ast.expr, local: dict[str, ast.expr]) -> list[str] | None:
    if isinstance(node, ast.Name) and node.id in local:
        return _product(local[node.id], local)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _product(node.left, local), _product(node.right, local)
        return None if left is None or right is None else left + right
    name = dotted(node) or ""
    if name == "self.max_position_embeddings":
        return []
    return ["factor"] if name in {"self.scaling_factor", "scaling_factor"} else None


def _widened(lineage: Lineage) -> list[str] | None:
    """["4"] where a constructor on the way hands its base four times the positions that it was given."""
    for cls in lineage.classes:
        function = cls.members().get("__init__")
        if not isinstance(function, ast.FunctionDef):
            continue
        local = {dotted(t) or "": a.value for a in walk(function, ast.Assign) for t in a.targets}
        for call in walk(function, ast.Call):
            if ast.unparse(call.func) != "super().__init__" or len(call.args) <= POSITIONS:
                continue
            handed = call.args[POSITIONS]
            handed = local.get(dotted(handed) or "", handed)
            if dotted(handed) == "max_position_embeddings":
                continue
            return ["4"] if isinstance(handed, ast.BinOp) and _factor(handed, function) == 4 else None
    return []


def _factor(product: ast.BinOp, function: ast.FunctionDef) -> object:
    """The number in ``max_position_embeddings * n``, where n may be a parameter with a default."""
    if dotted(product.left) != "max_position_embeddings" or not isinstance(product.op, ast.Mult):
        return None
    if isinstance(product.right, ast.Name):
        arguments = function.args
        defaults = dict(zip([a.arg for a in arguments.kwonlyargs], arguments.kw_defaults, strict=True))
        plain = [a.arg for a in arguments.args]
        defaults.update(zip(reversed(plain), reversed(arguments.defaults), strict=False))
        return literal(defaults.get(product.right.id))
    return literal(product.right)
