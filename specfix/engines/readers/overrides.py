"""Read a function that rewrites a draft's config, statement by statement, as steps of conditions and effects.

Each test at the top of the function is one stage: what it reads of the config is what the stages before it left. Inside
a stage each way through its tests is followed on its own, and ways that come to the same are put together again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from specfix.engines.compiled import Condition
from specfix.engines.conditions import evaluate, names
from specfix.engines.facts.speculative import Count, Override
from specfix.engines.readers.paths import Locals, joined, readable, renamed
from specfix.engines.source.imports import file_of
from specfix.engines.source.joining import FALSE, TRUE, every, is_lifted, negated
from specfix.engines.source.lift import Lifter
from specfix.engines.source.lookup import module_constant
from specfix.engines.source.tree import SourceTree, literal

INITIAL = "initial."  # of names: the config as it came


class _Unread(Exception):
    """A statement that is not understood; the message says which."""


@dataclass
class _Way:
    """One way through a stage, and what it does to the config."""

    when: list[Condition] = field(default_factory=list)
    local: Locals = field(default_factory=dict)
    counts: dict[str, Count] = field(default_factory=dict)  # local variables that hold a number of the config
    dicts: dict[str, dict[str, ast.expr]] = field(default_factory=dict)  # local variables that hold a dict
    repeats: dict[str, str] = field(default_factory=dict)  # those that hold one item as often as another says
    model_type: Condition | None = None
    architectures: Condition | None = None
    n_predict: Count | None = None
    becomes: str | None = None
    keys: tuple[str, ...] = ()
    end: Literal["raise", "return"] | None = None

    def fork(self, test: Condition) -> _Way:
        new = deepcopy(self)
        new.when.append(test)
        return new

    @property
    def effect(self) -> tuple[Any, ...]:
        kept = {name: {key: ast.dump(value) for key, value in of.items()} for name, of in self.dicts.items()}
        return self.model_type, self.architectures, self.n_predict, self.becomes, self.end, self.counts, kept

    @property
    def does(self) -> bool:
        return any((self.model_type, self.architectures, self.n_predict, self.becomes, self.keys, self.end))


def read_overrides(
    tree: SourceTree, file: str, function: ast.FunctionDef, unknown: dict[str, str]
) -> tuple[Override, ...]:
    """The steps of ``function``. One that is not understood is there as ``unread`` and named in ``unknown``."""
    return tuple(_Reader(tree, file, function, unknown).read(function.body))


class _Defaults(dict[str, object]):
    """Defaults of getattr() by name, and the names that are read with one default here and another there."""

    def __init__(self) -> None:
        super().__init__()
        self.differ: set[str] = set()

    def setdefault(self, key: str, default: object = None) -> object:
        if key in self and self[key] != default:
            self.differ.add(key)
        return super().setdefault(key, default)


class _Reader:
    def __init__(self, tree: SourceTree, file: str, function: ast.FunctionDef, unknown: dict[str, str]) -> None:
        self.lifter = Lifter(tree, file, "SpeculativeConfig")
        self.unknown = unknown
        self.config, *others = [argument.arg for argument in function.args.args]
        self.prefix = f"{self.config}."
        self._local: Locals = {name: ["const", None] for name in others}  # by default; each has one
        self._captured: dict[str, int] = {}  # local variables of the function to the overrides before them
        self._defaults: dict[str, object] = {}  # of what these read
        self._found: list[Override] = []
        self._imports: dict[str, str] = {}

    def read(self, body: Sequence[ast.stmt]) -> list[Override]:
        for node in body:
            self.lifter.defaults = _Defaults()
            try:
                self._top(node)
            except _Unread as reason:
                self.unknown[f"mtp.overrides.{node.lineno}"] = str(reason)
                when = renamed(self._touched(node), self.prefix, "")
                self._found.append(Override(when=when, unread=True, line=node.lineno))
        return self._found

    def _top(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name != self.config:
                lifted = self._lift(value, _Way(local=self._stage_locals()))
                if all(override.last for override in self._found):  # nothing has been changed yet
                    lifted = renamed(lifted, self.prefix, self.prefix + INITIAL)
                self._local[name] = lifted
                self._captured[name] = len(self._found)
                self._defaults |= self.lifter.defaults
            case ast.If():
                self._found += list(self._stage(node))
            case ast.Return() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise _Unread(f"{type(node).__name__.lower()} at the top of the function")

    def _touched(self, node: ast.stmt) -> Condition:
        """Where a stage that is not understood may do something: in any of its branches."""
        tests: list[Condition] = []
        while isinstance(node, ast.If):
            try:
                tests.append(self._lift(node.test, _Way(local=self._stage_locals())))
            except _Unread as reason:
                return ["?", str(reason)]
            if not node.orelse:
                return ["or", *tests]
            node = node.orelse[0]
        return ["?", f"{type(node).__name__.lower()} in {self.config}"]

    def _stage_locals(self) -> Locals:
        return {**self._local, self.config: ["name", self.config]}

    def _stage(self, node: ast.If) -> Iterator[Override]:
        for way in self._if(node, _Way(local=self._stage_locals())):
            if not way.does:
                continue
            if evaluate(every(*way.when), {}) is False:
                self.unknown[f"mtp.overrides.{node.lineno}"] = "hangs on an argument that only some callers pass"
                continue
            yield from self._split(way, node)

    # Ways

    def _run(self, body: Sequence[ast.stmt], way: _Way) -> list[_Way]:
        ways = [way]
        for node in body:
            ways = [new for each in ways for new in ([each] if each.end else self._step(node, each))]
        return ways

    def _step(self, node: ast.stmt, way: _Way) -> list[_Way]:
        match node:
            case ast.If():
                return self._if(node, way)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value, way)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(name, value, way)
            case ast.Assign(targets=[ast.Attribute(value=owner, attr=key)], value=value):
                self._set(self._owner(owner, way) + key, value, way)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=key)], value=value):
                if name not in way.dicts or not isinstance(literal(key), str):
                    raise _Unread(f"{ast.unparse(node)} is not understood")
                way.dicts[name][str(literal(key))] = value
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="update"), args=[given])):
                for key, value in self._items(given, way):
                    self._set(self._owner(owner, way) + key, value, way)
            case ast.ImportFrom(module=str(module)):
                self._imports |= {alias.asname or alias.name: module for alias in node.names}
            case ast.Raise():
                way.end = "raise"
            case ast.Return():
                way.end = "return"
            case ast.Assert() | ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise _Unread(f"{ast.unparse(node).splitlines()[0]} is not understood")
        return [way]

    def _if(self, node: ast.If, way: _Way) -> list[_Way]:
        if self._falls_back(node, way):
            return [way]
        test = self._lift(node.test, way)
        if test in (TRUE, FALSE):
            return self._run(node.body if test == TRUE else node.orelse, way)
        then, otherwise = self._run(node.body, way.fork(test)), self._run(node.orelse, way.fork(negated(test)))
        if len(then) == len(otherwise) == 1 and not then[0].end and then[0].effect == otherwise[0].effect:
            one, other = then[0], otherwise[0]
            keys = tuple(dict.fromkeys((*one.keys, *other.keys)))
            local = joined(test, one.local, other.local)
            if way.when:  # a test inside a stage, which changes at most what is written besides
                return [replace(one, when=way.when, keys=keys, local=local)]
        if any(each.end == "raise" and not is_lifted(every(*each.when)) for each in then):
            raise _Unread(f"whether {ast.unparse(node.test)} is not understood")
        return [*then, *otherwise]

    def _falls_back(self, node: ast.If, way: _Way) -> bool:
        """``if count is None: count = …``, which adds to the places where the count is looked for."""
        match node.test:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
                before = way.counts.get(name)
            case _:
                return False
        if before is None or before.default is not None or node.orelse:
            return False
        inner = self._run(node.body, deepcopy(way))
        after = inner[0].counts.get(name)
        if len(inner) != 1 or after is None or after.required or inner[0].does != way.does:
            return False
        way.counts[name] = Count((*before.keys, *after.keys), after.default)
        return True

    # Effects

    def _assign(self, name: str, value: ast.expr, way: _Way) -> None:
        way.counts.pop(name, None)
        way.dicts.pop(name, None)
        if name == self.config:
            part = self._lift(value, way)
            if part[0] != "name" or not part[1].startswith(self.prefix):
                raise _Unread(f"what {self.config} becomes is not understood")
            way.local[name], way.becomes = part, part[1].removeprefix(self.prefix)
            return
        match value:
            case ast.BinOp(left=ast.List(elts=[_]), op=ast.Mult(), right=ast.Name(id=times)):
                way.repeats[name] = times
        if isinstance(value, ast.Dict) and all(key is not None for key in value.keys):
            way.dicts[name] = {str(literal(k)): v for k, v in zip(value.keys, value.values, strict=True)}
        count = self._count(value, way)
        if count is not None:
            way.counts[name] = count
        way.local[name] = self._lift(value, way)

    def _items(self, given: ast.expr, way: _Way) -> Iterator[tuple[str, ast.expr]]:
        if isinstance(given, ast.Name) and given.id in way.dicts:
            yield from way.dicts[given.id].items()
        elif isinstance(given, ast.Dict) and all(isinstance(key, ast.Constant) for key in given.keys):
            for key, value in zip(given.keys, given.values, strict=True):
                yield str(literal(key)), value
        elif isinstance(given, ast.Name) and self._local.get(given.id) == ["const", None]:
            yield given.id, given  # of a caller's own argument, whose way is not followed
        else:
            raise _Unread(f"an update with {ast.unparse(given)} is not understood")

    def _owner(self, owner: ast.expr, way: _Way) -> str:
        """Prefix of what is written: "" for the config that the function hands back."""
        lifted = self._lift(owner, way)
        if lifted == way.local[self.config]:
            return ""
        if lifted[0] == "name" and lifted[1].startswith(self.prefix):
            return f"{lifted[1].removeprefix(self.prefix)}."
        raise _Unread(f"what {ast.unparse(owner)} is is not understood")

    def _set(self, key: str, value: ast.expr, way: _Way) -> None:
        if key == "model_type":
            way.model_type = self._lift(value, way)
        elif key == "architectures":
            one = value.elts[0] if isinstance(value, ast.List) and len(value.elts) == 1 else None
            way.architectures = ["?", "more than one"] if one is None else self._lift(one, way)
        elif key == "n_predict":
            way.n_predict = self._count(value, way)
            if way.n_predict is None:
                raise _Unread(f"where n_predict comes from in {ast.unparse(value)} is not understood")
        elif key not in way.keys:
            way.keys = (*way.keys, key)

    # Values

    def _lift(self, node: ast.expr, way: _Way) -> Condition:
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                way.local[inner.target.id] = self._lift(inner.value, way)
        node = _WithoutNamed().visit(deepcopy(node))
        match node:
            case ast.Subscript(value=ast.Name(id=table), slice=ast.Name(id=index)) if table in way.dicts:
                return self._looked_up(way.dicts[table], way.local.get(index, ["?", index]), way)
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=items)]),
                ops=[ast.NotEq()],
                comparators=[ast.Name(id=times)],
            ) if way.repeats.get(items) == times:
                return FALSE
        used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        for name in used & self._captured.keys():
            self._still_holds(name, way)
        return self.lifter.lift(readable(self.lifter, node), way.local)

    def _looked_up(self, table: dict[str, ast.expr], index: Condition, way: _Way) -> Condition:
        """An entry of a dict; the tests before must leave only its keys."""
        if ["in", index, ["const", list(table)]] not in way.when:
            raise _Unread("a look-up that may fail")
        *some, last = table.items()
        found = self._lift(last[1], way)
        for key, value in reversed(some):
            found = ["if", ["==", index, ["const", key]], self._lift(value, way), found]
        return found

    def _still_holds(self, name: str, way: _Way) -> None:
        """A variable read from the config before some overrides is what the config has now, unless one of these was
        taken. Raises _Unread where one may have been."""
        lifted = self._local[name]
        read = {n.removeprefix(self.prefix).partition(".")[0] for n in names(lifted) if n.startswith(self.prefix)}
        for override in self._found[self._captured[name] :]:
            if not override.unread and override.last:
                continue
            changed = read if override.unread else {"model_type"} if override.model_type else set()
            changed |= {"architectures"} if override.architectures else set()
            if not read - {INITIAL.rstrip(".")} or not (override.becomes or read & changed):
                continue
            if not self._apart(override.when, every(*way.when)):
                raise _Unread(f"{name} was read before an override that may change it")

    def _apart(self, taken: Condition, way: Condition) -> bool:
        """Whether ``way`` cannot be gone where ``taken`` holds, which tests something that does not change."""
        match taken:
            case [("==" | "in") as test, ["name", str(name)], ["const", values]] if name.startswith(INITIAL):
                each = values if test == "in" else [values]
                return all(evaluate(way, {self.prefix + name: value}) is False for value in each)
        return False

    def _count(self, value: ast.expr, way: _Way) -> Count | None:
        """Where a number comes from; None where that is not understood."""
        node = readable(self.lifter, value)
        match node:
            case ast.Constant(value=int(number)):
                return Count(default=number)
            case ast.Name(id=name) if name in way.counts:
                return way.counts[name]
            case ast.Name(id=name):
                constant = self._constant(name)
                return None if constant is None else Count(default=constant)
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(key)), default]):
                nothing = isinstance(default, ast.Constant) and default.value is None
                rest = Count() if nothing else self._count(default, way)
                place = self._place(owner, way)
                return None if rest is None or place is None else replace(rest, keys=(place + key, *rest.keys))
            case ast.Attribute(value=owner, attr=key):
                place = self._place(owner, way)
                return None if place is None else Count((place + key,), required=True)
        return None

    def _place(self, owner: ast.expr, way: _Way) -> str | None:
        lifted = self._lift(owner, way)
        if lifted[0] != "name" or not f"{lifted[1]}.".startswith(self.prefix):
            return None
        return f"{lifted[1]}.".removeprefix(self.prefix)

    def _constant(self, name: str) -> int | None:
        """A number of the module, or of the one that the stage imports it from."""
        module = self._imports.get(name, "").partition(".")[2]
        for file in (module and file_of(self.lifter.tree, module), self.lifter.file):
            found = module_constant(self.lifter.tree, file, name) if file else None
            if isinstance(found, int):
                return found
        return None

    # Overrides

    def _split(self, way: _Way, node: ast.If) -> Iterator[Override]:
        """One override for each pair of values that the way may give the config."""
        for types, model_type in _alternatives(way.model_type):
            for tests, architecture in _alternatives(way.architectures):
                when = every(*way.when, *types, *tests)
                if evaluate(when, {}) is False or _contradicts(when):
                    continue
                if not is_lifted(when) or "?" in (model_type, architecture):
                    raise _Unread(f"what {ast.unparse(node.test)} leads to is not understood")
                yield Override(
                    when=(test := renamed(when, self.prefix, "")),
                    model_type=model_type,
                    architectures=None if architecture is None else (architecture,),
                    n_predict=way.n_predict,
                    becomes=way.becomes,
                    keys=way.keys,
                    refused=way.end == "raise",
                    last=way.end == "return",
                    defaults=self._defaults_of(test),
                    line=node.lineno,
                )

    def _defaults_of(self, when: Condition) -> dict[str, object]:
        stage = self.lifter.defaults
        used = {f"{self.prefix}{name}" for name in names(when)}
        if isinstance(stage, _Defaults) and stage.differ & used:
            raise _Unread(f"{', '.join(sorted(stage.differ & used))} has more than one default")
        every_one = {**self._defaults, **stage}
        return {n.removeprefix(self.prefix): every_one[n] for n in sorted(used) if every_one.get(n) is not None}


class _WithoutNamed(ast.NodeTransformer):
    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        value = self.generic_visit(node.value)
        assert isinstance(value, ast.expr)
        return value


def _alternatives(value: Condition | None) -> Iterator[tuple[list[Condition], str | None]]:
    """The texts that ``value`` may be, each with the tests under which it is; "?" for what is no text."""
    match value:
        case None:
            yield [], None
        case ["const", str(text)]:
            yield [], text
        case ["if", test, then, otherwise]:
            for holds, branch in ((test, then), (negated(test), otherwise)):
                yield from (([holds, *tests], one) for tests, one in _alternatives(branch))
        case _:
            yield [], "?"


def _contradicts(when: Condition) -> bool:
    """Whether a test and its opposite are both asked for."""
    parts = when[1:] if when[0] == "and" else [when]
    return any(negated(part) in parts for part in parts)
