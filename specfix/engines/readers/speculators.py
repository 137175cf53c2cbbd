"""Read what a release makes of a draft config in the speculators library's format."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from specfix.engines.facts.speculative import Algorithm, Copied, SpeculatorsFacts
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

FOLDER = "transformers_utils/configs/speculators"
ALGOS = f"{FOLDER}/algos.py"
BASE = f"{FOLDER}/base.py"
CONFIG = "transformers_utils/config.py"
ARGUMENTS = "engine/arg_utils.py"
REGISTER = "register_speculator"
VALIDATE = "validate_speculators_config"
BUILDERS = ("build_vllm_speculative_config", "convert_speculators_to_vllm")  # the newer name first
SERVED = ("maybe_override_with_speculators", "maybe_override_with_speculators_target_model")
TOKENS = "speculative_tokens"


class _Unread(Exception):
    """A statement that is not understood; the message says which."""


def read_speculators(tree: SourceTree, unknown: dict[str, str]) -> SpeculatorsFacts:
    module = tree.module(ALGOS)
    if module is None:
        if any(True for _ in tree.files(FOLDER)):
            unknown["speculators.algorithms"] = f"no {ALGOS}"
            return SpeculatorsFacts()
        return SpeculatorsFacts(algorithms={}, required=())  # a release that does not know the format
    builder = next((found for name in BUILDERS if (found := tree.function(BASE, name))), None)
    renames = _renames(builder)
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    algorithms: dict[str, Algorithm | None] = {}
    for function in functions.values():
        for name in _registered(function):
            try:
                made = _Update(functions).run(function)
            except _Unread as reason:
                unknown[f"speculators.algorithms.{name}"] = str(reason)
                algorithms[name] = None
                continue
            algorithms[name] = replace(made, speculative={"method": name, **renames.get(name, {})})
    validate = tree.function(BASE, VALIDATE)
    served = next((found for name in SERVED if (found := tree.function(CONFIG, name))), None)
    tokens, tokens_as = _tokens(builder)
    verifier = _verifier(served)
    for fact, value in (("required", validate), ("tokens", tokens), ("tokens_as", tokens_as), ("verifier", verifier)):
        if value is None:
            unknown[f"speculators.{fact}"] = f"not found in {BASE} or {CONFIG}"
    user, locked = _user_config(tree, served)
    if user is None:
        unknown["speculators.user_config"] = f"what becomes of it is not understood in {CONFIG}"
    return SpeculatorsFacts(
        algorithms=algorithms,
        required=_required(validate) if validate else None,
        tokens=tokens,
        tokens_as=tokens_as,
        verifier=verifier,
        local_verifier=None if served is None else not _refuses_local(served),
        user_config=user,
        locked=locked,
    )


def _registered(function: ast.FunctionDef) -> Iterator[str]:
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and dotted(decorator.func) == REGISTER:
            yield str(literal(decorator.args[0]))


# The function of one algorithm


@dataclass
class _Update:
    """Follows a function that writes to a config ``made`` what it reads of a speculators config ``given``."""

    functions: Mapping[str, ast.FunctionDef]
    keys: dict[str, Copied] = field(default_factory=dict)
    architectures: dict[str, tuple[str, ...]] = field(default_factory=dict)
    model_type: str | None = None
    kept: tuple[str, ...] = ()
    given: str = ""
    made: str = ""
    local: dict[str, ast.expr] = field(default_factory=dict)
    depth: int = 0

    def run(self, function: ast.FunctionDef) -> Algorithm:
        self.given, self.made = (argument.arg for argument in function.args.args)
        self.local = {}
        for node in function.body:
            self._step(node)
        if not self.architectures:
            raise _Unread(f"{function.name} makes no architectures")
        return Algorithm(self.architectures, self.model_type, self.kept, self.keys)

    def _step(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.local[name] = value
                return
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                self._write(self._place(target), value)
                return
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name in self.functions and self.depth < 3:
                outer = self.given, self.made, self.local
                self.depth += 1
                self.run(self.functions[name])
                self.given, self.made, self.local = outer
                return
            case ast.If(test=test, body=[ast.Assign(targets=[ast.Subscript() as target], value=value)], orelse=[]):
                self._write_if(test, self._place(target), value)
                return
            case ast.If(test=ast.Compare(left=ast.Name(id=tested), ops=[ast.NotIn()], comparators=[table])):
                if isinstance(node.body[-1], ast.Raise) and not node.orelse:
                    self._layer_type(tested)
                    self._table(table)
                    return
            case ast.For(target=ast.Name(id=name), iter=items, body=[ast.If() as inner]):
                for key in self._texts(items):
                    self._step(_Put(name, key).visit(ast.parse(ast.unparse(inner))).body[0])
                return
        raise _Unread(f"{ast.unparse(node).splitlines()[0]} is not understood")

    def _place(self, target: ast.Subscript) -> str:
        """Dotted key of the converted config."""
        key = literal(target.slice)
        if isinstance(key, str):
            if dotted(target.value) == self.made:
                return key
            if isinstance(target.value, ast.Subscript):
                return f"{self._place(target.value)}.{key}"
        raise _Unread(f"{ast.unparse(target)} is not understood")

    def _write(self, place: str, value: ast.expr) -> None:
        if place == "architectures":
            self._write_architectures(value)
        elif isinstance(value, ast.Dict):
            for key, part in zip(value.keys, value.values, strict=True):
                self._write(f"{place}.{literal(key)}", part)
        else:
            self.keys[place] = self._copied(value)

    def _write_if(self, test: ast.expr, place: str, value: ast.expr) -> None:
        when: Literal["given", "true"] = "true"
        match test:
            case ast.Compare(left=tested, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                when = "given"
            case _:
                tested = test
        asked, copied = self._copied(tested), self._copied(value)
        if asked.source is None or asked.source != copied.source or asked.default is not None or copied.change:
            raise _Unread(f"{ast.unparse(test)} is not understood")
        self.keys[place] = replace(copied, when=when, required=False)

    def _copied(self, value: ast.expr) -> Copied:
        match value:
            case ast.Name(id=name) if name in self.local:
                return self._copied(self.local[name])
            case ast.Subscript(value=ast.Name(id=given), slice=ast.Constant(value=str(key))) if given == self.given:
                return Copied(key, required=True)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=given), attr="get"), args=[ast.Constant(value=str(key)), *default]
            ) if given == self.given and all(isinstance(one, ast.Constant) for one in default):
                return Copied(key, literal(default[0]) if default else None)
            case ast.UnaryOp(op=ast.Not(), operand=of):
                return self._changed(of, "negated")
            case ast.ListComp(
                elt=ast.BinOp(left=ast.Name(id=one), op=ast.Sub(), right=ast.Constant(value=1)),
                generators=[ast.comprehension(target=ast.Name(id=each), iter=of, ifs=[])],
            ) if one == each:
                return self._changed(of, "less one")
            case ast.Constant(value=constant):
                return Copied(default=constant)
        raise _Unread(f"{ast.unparse(value)} is not understood")

    def _changed(self, of: ast.expr, change: Literal["less one", "negated"]) -> Copied:
        copied = self._copied(of)
        if copied.change:
            raise _Unread(f"{ast.unparse(of)} is changed twice")
        return replace(copied, change=change)

    # Architectures

    def _write_architectures(self, value: ast.expr) -> None:
        match value:
            case ast.List(elts=[ast.Subscript(value=ast.Name() as table, slice=ast.Name(id=name))]):
                self._layer_type(name)
                self._table(table)
            case ast.BoolOp(op=ast.Or(), values=[ast.Name(id=name), ast.List() as otherwise]):
                self.kept = self._chosen(self.local.get(name, otherwise))
                self.architectures = {"": self._texts(otherwise)}
            case ast.List():
                self.architectures = {"": self._texts(value)}
            case _:
                raise _Unread(f"architectures of {ast.unparse(value)} are not understood")

    def _table(self, node: ast.expr) -> None:
        """Architectures by model type."""
        table = literal(self.local.get(node.id) if isinstance(node, ast.Name) else node)
        if not isinstance(table, dict):
            raise _Unread(f"{ast.unparse(node)} is no table")
        self.architectures = {str(key): (str(value),) for key, value in table.items()}

    def _layer_type(self, name: str) -> None:
        """``name`` must hold the model type of the layer config."""
        match self.local.get(name):
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=made), attr="get"),
                args=[ast.Constant(value="model_type"), ast.Constant(value=str(default))],
            ) if made == self.made:
                self.model_type = default
            case _:
                raise _Unread(f"{name} is not the model type of the layer config")

    def _chosen(self, node: ast.expr) -> tuple[str, ...]:
        """``[each for each in (the config's own) if each in {…}]``."""
        match node:
            case ast.ListComp(
                elt=ast.Name(id=one),
                generators=[
                    ast.comprehension(
                        target=ast.Name(id=each),
                        iter=ast.Name(id=own),
                        ifs=[ast.Compare(left=ast.Name(id=tested), ops=[ast.In()], comparators=[some])],
                    )
                ],
            ) if one == each == tested and own in self.local:
                stated = self.local[own]
                if isinstance(stated, ast.BoolOp) and literal(stated.values[-1]) == []:
                    stated = stated.values[0]
                if self._copied(stated).source == "architectures":
                    return tuple(sorted(self._texts(some)))
        raise _Unread(f"{ast.unparse(node)} is not understood")

    def _texts(self, node: ast.expr) -> tuple[str, ...]:
        found = literal(self.local.get(node.id) if isinstance(node, ast.Name) else node)
        if not isinstance(found, list | tuple | set) or not all(isinstance(text, str) for text in found):
            raise _Unread(f"{ast.unparse(node)} is no list of texts")
        return tuple(found)


class _Put(ast.NodeTransformer):
    """A text in the place of a variable."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self._text) if node.id == self._name else node


# What is asked of the whole config


def _required(function: ast.FunctionDef) -> tuple[str, ...]:
    """Dotted keys that are read by subscript, and those that are tested by ``not in``, in order."""
    paths = {function.args.args[-1].arg: ""}
    found: list[str] = []
    for node in _in_order(function.body):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            place = _subscripts(node.value, paths)
            if place is not None:
                paths[node.targets[0].id] = f"{place}."
                found.append(place)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and isinstance(node.body[-1], ast.Raise):
            key = literal(node.test.left)
            if isinstance(node.test.ops[0], ast.NotIn) and isinstance(key, str):
                found.append(paths.get(dotted(node.test.comparators[0]) or "", "") + key)
    longer = [place for place in found if not any(other.startswith(f"{place}.") for other in found)]
    return tuple(dict.fromkeys(longer))


def _in_order(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield from _in_order(node.body) if isinstance(node, ast.Try) else [node]


def _subscripts(node: ast.expr, paths: Mapping[str, str]) -> str | None:
    """Dotted key of ``a["b"][0]`` or of ``a.get("b")``, where ``paths`` has that of ``a``."""
    match node:
        case ast.Name(id=name) if name in paths:
            return paths[name].rstrip(".")
        case ast.Subscript(value=of, slice=ast.Constant(value=str() | int() as key)):
            pass
        case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[ast.Constant(value=str() | int() as key), *_]):
            pass
        case _:
            return None
    outer = _subscripts(of, paths)
    return None if outer is None else f"{outer}.{key}".lstrip(".")


def _paths(function: ast.FunctionDef, heads: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(variable, dotted key) of each variable that holds a part of the config."""
    paths = dict(heads)
    for node in _in_order(function.body):
        for assign in walk(node, ast.Assign):
            place = _subscripts(assign.value, paths)
            for target in assign.targets:
                if place is not None and isinstance(target, ast.Name):
                    paths[target.id] = f"{place}."
                    yield target.id, place


def _tokens(builder: ast.FunctionDef | None) -> tuple[str | None, str | None]:
    """Where the number of draft tokens stands, and the key that it becomes."""
    if builder is None:
        return None, None
    for name, place in _paths(builder, {builder.args.args[-1].arg: ""}):
        if place.endswith(f".{TOKENS}"):
            for made in walk(builder, ast.Dict):
                for key, value in zip(made.keys, made.values, strict=True):
                    if dotted(value) == name and key is not None:
                        return place, str(literal(key))
    return None, None


def _verifier(served: ast.FunctionDef | None) -> str | None:
    """Where the served target stands: what ``model`` becomes."""
    if served is None:
        return None
    heads = {"config_dict": ""}
    found = dict(_paths(served, heads))
    for assign in walk(served, ast.Assign):
        if any(dotted(target) == "model" for target in assign.targets):
            return found.get(dotted(assign.value) or "", found.get("model"))
    return None


def _refuses_local(served: ast.FunctionDef) -> bool:
    tests = [node.test for node in walk(served, ast.If) if isinstance(node.body[-1], ast.Raise)]
    return any(read.attr == "exists" for test in tests for read in walk(test, ast.Attribute))


def _renames(builder: ast.FunctionDef | None) -> dict[str, dict[str, Any]]:
    """By algorithm: what the speculative config has instead of the algorithm's name.

    ``if result["method"] == "x": result.update({…})``, or ``result["method"] = "y"``.
    """
    found: dict[str, dict[str, Any]] = {}
    for node in walk(builder, ast.If) if builder else ():
        match node.test:
            case ast.Compare(
                left=ast.Subscript(slice=ast.Constant(value="method")),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value=str(name))],
            ):
                pass
            case _:
                continue
        match node.body:
            case [ast.Expr(value=ast.Call(func=ast.Attribute(attr="update"), args=[given]))]:
                made = literal(given)
                found[name] = dict(made) if isinstance(made, dict) else {}
            case [ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str(key)))], value=value)]:
                found[name] = {key: literal(value)}
    return found


def _user_config(
    tree: SourceTree, served: ast.FunctionDef | None
) -> tuple[Literal["dropped", "merged", "kept"] | None, tuple[str, ...]]:
    if served is None:
        return None, ()
    own = next((arg.arg for arg in served.args.args if arg.arg == "vllm_speculative_config"), None)
    if own is None:  # the arguments make a config where there is none
        create = tree.function(ARGUMENTS, "create_speculative_config")
        tests = [ast.unparse(node.test) for node in walk(create, ast.If)] if create else []
        return ("kept" if "isinstance(hf_config, SpeculatorsConfig)" in tests else None), ()
    updates = [c for c in walk(served, ast.Call) if (dotted(c.func) or "").endswith(".update") and c.args]
    merge = next((call for call in updates if dotted(call.args[0]) == own), None)
    if merge is None:
        return "dropped", ()
    result = (dotted(merge.func) or "").removesuffix(".update")
    locked = [
        str(literal(target.slice))
        for assign in walk(served, ast.Assign)
        for target in assign.targets
        if isinstance(target, ast.Subscript) and dotted(target.value) == result and assign.lineno > merge.lineno
    ]
    return "merged", tuple(locked)
