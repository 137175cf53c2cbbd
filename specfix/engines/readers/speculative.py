"""Read the keys of the speculative config, and what a release makes of them before it loads a draft."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from specfix.engines.compiled import Condition
from specfix.engines.conditions import names
from specfix.engines.facts.decisions import Step
from specfix.engines.facts.speculative import Key, SpeculativeFacts
from specfix.engines.readers.annotations import Unreadable, allowed
from specfix.engines.readers.config_classes import STDLIB, made_by
from specfix.engines.readers.paths import Paths, Reached
from specfix.engines.readers.requests import read_requests
from specfix.engines.source.joining import ends, every, is_lifted, negated
from specfix.engines.source.lift import RAISES, Lifter
from specfix.engines.source.lookup import fields_of
from specfix.engines.source.tree import SourceTree, config_homes, dotted, find_function, literal, walk

CLASS = "SpeculativeConfig"
ARGUMENTS = "engine/arg_utils.py"
CREATE = "create_speculative_config"
STARTS = ("__post_init__", "_verify_args")
TOKENS = "num_speculative_tokens"
_BOUNDS = ("ge", "gt", "le", "lt")


def read_speculative(tree: SourceTree, unknown: dict[str, str]) -> SpeculativeFacts:
    file = tree.config_file(CLASS)
    node = tree.class_(file, CLASS) if file else None
    if file is None or node is None:
        for fact in SpeculativeFacts.__dataclass_fields__:
            if fact != "read_as_mapping":
                unknown[f"speculative.{fact}"] = f"no {CLASS} in {' or '.join(config_homes('speculative'))}"
        return SpeculativeFacts()
    create = tree.function(ARGUMENTS, CREATE)
    passed = _passed(create)
    if passed is None:
        unknown["speculative.passed"] = f"no {CREATE} that adds to the config in {ARGUMENTS}"
    reached = list(_reached(tree, file, node))
    made = _made(node, reached, passed or ())
    parsed = _parsed(node)
    fields = {name: field for name, field in fields_of(node).items() if name not in {*made, *(passed or ())}}
    keys = {name: _key(tree, file, field, name in parsed, unknown) for name, field in fields.items()}
    return SpeculativeFacts(
        keys=keys,
        passed=passed,
        made=made,
        read_as_mapping=_read_as_mapping(tree, file, reached, made),
        refuses_others=_refuses_others(tree, file, node, create, unknown),
        dashes=None if create is None else _dashes(create),
        methods=tuple(_methods(reached)),
        tokens=tuple(_tokens(reached, unknown)),
        multiples=tuple(_multiples(reached, unknown)),
        refusals=tuple(_refusals(reached, keys)),
        architectures=tuple(_architectures(reached)),
        requests=read_requests(tree),
    )


# Keys


def _key(tree: SourceTree, file: str, field: ast.AnnAssign, parsed: bool, unknown: dict[str, str]) -> Key:
    name = ast.unparse(field.target)
    is_read, default, options = _default(field.value)
    if not is_read:
        unknown[f"speculative.keys.{name}.default"] = f"{file}:{field.lineno} is no plain value"
    bounds = _bounds(options)
    key = Key(
        type=None,
        default=default,
        required=field.value is None,
        at_least=bounds.get("ge"),
        above=bounds.get("gt"),
        at_most=bounds.get("le"),
        below=bounds.get("lt"),
        parsed=parsed,
    )
    try:
        kind = allowed(tree, file, field.annotation, enum_names=parsed)
    except Unreadable as reason:
        unknown[f"speculative.keys.{name}.type"] = unknown[f"speculative.keys.{name}.choices"] = str(reason)
        return key
    return replace(
        key, type=kind.type, choices=kind.only, nullable=kind.nullable, validated=kind.validated and kind.type != "Any"
    )


def _default(value: ast.expr | None) -> tuple[bool, object, Mapping[str, ast.expr]]:
    """Whether a field's default could be read, what it is, and the options that stand beside it."""
    if not (isinstance(value, ast.Call) and (dotted(value.func) or "").rpartition(".")[2] in {"Field", "field"}):
        return value is None or _is_plain(value), literal(value), {}
    options = {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg}
    stated = options.get("default", value.args[0] if value.args else None)
    factory = dotted(options["default_factory"]) if "default_factory" in options else None
    if factory in {"list", "dict"}:
        return True, [] if factory == "list" else {}, options
    return stated is not None and _is_plain(stated), literal(stated), options


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or literal(node) is not None


def _bounds(options: Mapping[str, ast.expr]) -> dict[str, float]:
    numbers = {name: literal(options[name]) for name in _BOUNDS if name in options}
    return {name: number for name, number in numbers.items() if isinstance(number, int | float)}


def _parsed(node: ast.ClassDef) -> set[str]:
    """Fields that a validator of the class sees before they are validated by type."""
    found: set[str] = set()
    for function in walk(node, ast.FunctionDef):
        for call in (each for each in function.decorator_list if isinstance(each, ast.Call)):
            before = any(k.arg == "mode" and literal(k.value) == "before" for k in call.keywords)
            if dotted(call.func) == "field_validator" and before:
                found |= {str(literal(argument)) for argument in call.args}
    return found


def _passed(create: ast.FunctionDef | None) -> tuple[str, ...] | None:
    """Keys that the engine puts over those of the user: ``self.speculative_config.update({…})``."""
    for call in walk(create, ast.Call) if create else ():
        if dotted(call.func) == "self.speculative_config.update" and isinstance(call.args[0], ast.Dict):
            return tuple(str(literal(key)) for key in call.args[0].keys if key)
    return None


def _made(node: ast.ClassDef, reached: list[Reached], passed: tuple[str, ...]) -> tuple[str, ...]:
    """Fields that are assigned while the config is made and whose own value nothing validates."""
    free = {name for name, field in fields_of(node).items() if "SkipValidation" in ast.unparse(field.annotation)}
    configs = {name for name in free if "Config]" in ast.unparse(fields_of(node)[name].annotation)}
    assigned = {name for each in reached for name in _assigned(each.node)}
    return tuple(name for name in fields_of(node) if name in configs & assigned and name not in passed)


def _read_as_mapping(
    tree: SourceTree, file: str, reached: list[Reached], made: tuple[str, ...]
) -> dict[str, Condition]:
    found: dict[str, Condition] = {}
    for each in reached:
        for call in walk(each.node.test, ast.Call) if isinstance(each.node, ast.If) else ():
            if dotted(call.func) == "isinstance" and ast.unparse(call.args[1]) == "dict":
                name = (dotted(call.args[0]) or "").removeprefix("self.")
                if name in made:
                    found[name] = _decisive(each.when, name)
    return found


def _decisive(when: Condition, name: str) -> Condition:
    """Of ``method == x and not method == y …`` the first: the others follow from it. Tests of the field itself are
    left out: they are true of a mapping."""
    parts = [part for part in (when[1:] if when[0] == "and" else [when]) if not any(name in n for n in names(part))]
    equal = [part for part in parts if part[0] == "==" and part[1] == ["name", "method"]]
    others = [part for part in parts if part[0] == "not" and names(part) == {"method"}]
    return equal[0] if equal and len(equal) + len(others) == len(parts) else every(*parts)


def _refuses_others(
    tree: SourceTree, file: str, node: ast.ClassDef, create: ast.FunctionDef | None, unknown: dict[str, str]
) -> bool | None:
    """By the decorators that make the class; pydantic drops keys that are no field unless told to forbid them."""
    made = made_by(tree, file, node) if _constructed(create) else None
    if made is not None:
        module, forbidden = made
        return module == STDLIB or forbidden
    unknown["speculative.refuses_others"] = f"how {CLASS} is made is not understood"
    return None


def _constructed(create: ast.FunctionDef | None) -> bool:
    """Whether all keys are handed to the class: ``SpeculativeConfig(**…)``, or a ``from_dict`` of it."""
    calls = [dotted(call.func) for call in (walk(create, ast.Call) if create else ())]
    return CLASS in calls or f"{CLASS}.from_dict" in calls


def _dashes(create: ast.FunctionDef) -> bool:
    return any(ast.unparse(call) == "k.replace('-', '_')" for call in walk(create, ast.Call))


# What becomes of the keys


def _reached(tree: SourceTree, file: str, node: ast.ClassDef) -> Iterator[Reached]:
    paths = Paths(Lifter(tree, file, CLASS))
    for name in STARTS:
        function = find_function(node, name)
        if function is not None:
            yield from paths.of(function)


def _assigned(node: ast.stmt) -> Iterator[str]:
    for target in node.targets if isinstance(node, ast.Assign) else ():
        name = dotted(target) or ""
        if name.startswith("self.") and name.count(".") == 1:
            yield name.removeprefix("self.")


def _methods(reached: list[Reached]) -> Iterator[Step]:
    for each in reached:
        if "method" in _assigned(each.node) and isinstance(each.node, ast.Assign):
            yield Step(each.when, literal(each.node.value), each.node.lineno)


def _tokens(reached: list[Reached], unknown: dict[str, str]) -> Iterator[Step]:
    for each in reached:
        if TOKENS not in _assigned(each.node) or not isinstance(each.node, ast.Assign):
            continue
        value = each.node.value
        name = dotted(value) or ""
        lifted = each.local.get(name, ["name", name.removeprefix("self.")])
        order = _in_order(lifted)
        if order is None:
            unknown[f"speculative.tokens.{each.node.lineno}"] = f"{ast.unparse(value)} is not understood"
        else:
            yield Step(each.when, list(order), each.node.lineno)


def _in_order(value: Condition) -> tuple[str, ...] | None:
    """The names of ``a``, or of ``b if a is None else a``."""
    match value:
        case ["name", str(name)] if name:
            return (name,)
        case ["if", ["is", test, ["const", None]], other, first] if test == first:
            one, two = _in_order(first), _in_order(other)
            return (*one, *two) if one and two else None
    return None


def _multiples(reached: list[Reached], unknown: dict[str, str]) -> Iterator[Step]:
    """``if tokens > n and tokens % n != 0: raise``."""
    for each in reached:
        node = each.node
        if not isinstance(node, ast.If) or not any(isinstance(b.op, ast.Mod) for b in walk(node.test, ast.BinOp)):
            continue
        match node.test:
            case ast.BoolOp(
                op=ast.And(),
                values=[
                    ast.Compare(left=above, ops=[ast.Gt()], comparators=[than]),
                    ast.Compare(left=ast.BinOp(left=of, right=by), ops=[ast.NotEq()], comparators=[zero]),
                ],
            ) if (
                dotted(above) == dotted(of) == f"self.{TOKENS}"
                and dotted(than) == dotted(by)
                and literal(zero) == 0
                and ends(node.body)
                and (name := each.local.get(dotted(by) or "", ["?"]))[0] == "name"
            ):
                yield Step(each.when, name[1], node.lineno)
            case _:
                unknown[f"speculative.multiples.{node.lineno}"] = f"{ast.unparse(node.test)} is not understood"


def _refusals(reached: list[Reached], keys: Mapping[str, Key]) -> Iterator[Step]:
    for each in reached:
        when, line = each.when, each.node.lineno
        if isinstance(each.node, ast.If):  # a number that is not there cannot be compared
            compared = each.node.test
            while isinstance(compared, ast.BoolOp):
                compared = compared.values[0]
            name = _ordered(compared)
            if name not in keys or keys[name].default is not None:
                continue
            when, line = every(when, ["is", ["name", name], ["const", None]]), compared.lineno
        elif not isinstance(each.node, ast.Raise):
            continue
        if is_lifted(when):
            yield Step(when, RAISES, line)


def _architectures(reached: list[Reached]) -> Iterator[Step]:
    """``self.draft_model_config.hf_config.architectures = ["DSparkDraftModel"]``, or one of two by a test."""
    for each in reached:
        match each.node:
            case ast.Assign(targets=[ast.Attribute(value=owner, attr="architectures")], value=ast.List(elts=[one])):
                name = dotted(owner) or ""
                owned = each.local.get(name, ["name", name.removeprefix("self.")])
            case _:
                continue
        if owned != ["name", "draft_model_config.hf_config"]:
            continue
        match one:
            case ast.IfExp(test=ast.Name(id=asked), body=body, orelse=orelse) if asked in each.local:
                ways = [(each.local[asked], body), (negated(each.local[asked]), orelse)]
            case _:
                ways = [(every(), one)]
        for test, made in ways:
            yield Step(every(each.when, test), literal(made), each.node.lineno)


def _ordered(test: ast.expr) -> str:
    """The field whose size is compared, or ""."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE):
        name = dotted(test.left) or ""
        return name.removeprefix("self.") if name.startswith("self.") else ""
    return ""
