"""What a function of the engine answers, as a tree of its own tests: ``["if", test, answer, answer]``.

The tree is a condition (see ``conditions``) whose leaves are the values that the function returns. Methods of a class
are looked up through its bases, calls of functions of the tree are followed where they only decide, and what cannot be
followed is ``["?", reason]``. Statements that only log or configure are passed over.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from specfix.engines.compiled import Condition
from specfix.engines.conditions import names
from specfix.engines.readers.folding import (
    A_TEXT,
    NONE,
    RAISES,
    both,
    compared,
    either,
    has_unread,
    if_,
    listed,
    negated,
)
from specfix.engines.source.classes import Class, Classes, Lineage
from specfix.engines.source.lift import enum_member, imported_from
from specfix.engines.source.tree import SourceTree, dotted, literal
from specfix.engines.source.words import COMPARED_BY

MAX_DEPTH = 12  # calls followed into one another
MAX_STEPS = 20_000  # statements run for one answer; a function of many tests in a row has 2^n ways

# What the engine asks of its platform, by the words of the conditions.
WORDS: Final[Mapping[str, str]] = {
    "current_platform.get_device_total_memory()": "device_memory",
    "current_platform.get_device_name().lower()": "device_name",
    "current_platform.get_device_name()": "chip_name",
    "current_platform.get_device_capability()": "capability",
    "device_capability": "capability",
}
PLATFORMS: Final = ("cuda", "rocm", "cpu", "xpu", "tpu")
# What a function that is followed may hang on, so that its own words say more than its call does.
SPOKEN: Final = re.compile(r"capability(\.m\w+)?|platform|device_\w+|cpu_architecture|envs\.\w+|[\w.]+\([^()]*\)")
TYPES: Final = ("float16", "bfloat16", "float32")  # of a model, as torch names them
BUNDLES: Final = ("attn_selector_config", "vllm_config", "self")  # of arguments, which newer releases hand over in one
# Enumerations whose members are known by their names; of others, such as AttentionType, the engine compares the values.
ENUMERATIONS: Final = (
    "AttentionBackendEnum",
    "_Backend",
    "UsageContext",
    "KVCacheLayout",
    "KVQuantMode",
    "CpuArchEnum",
    "CompilationMode",
    "CompilationLevel",
    "CUDAGraphMode",
)

_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Mult: operator.mul,
    ast.Add: operator.add,
    ast.LShift: operator.lshift,
}


_NO_TYPE: Final[Condition] = ["?", "values of a type"]


@dataclass(frozen=True, slots=True)
class Backing:
    """A class as the engine has it: made by a ``class`` statement, or by a function that returns one of its own.

    ``closure``: what the parameters of that function stand for."""

    lineage: Lineage
    closure: Mapping[str, Condition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where an expression stands."""

    file: str
    local: dict[str, Condition]
    backing: Backing | None = None  # the class that ``cls`` is
    owner: Class | None = None  # the one of its bases that this is written in
    depth: int = 0


@dataclass
class Answers:
    """Asks functions and classes of ``tree``.

    ``known``: what is given, by the words of the source (``current_platform.is_cpu()``). ``domains``: all values that
    a name of the conditions can have, for tests of its beginning and end.
    """

    tree: SourceTree
    classes: Classes
    known: Mapping[str, object] = field(default_factory=dict)
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _steps: int = 0
    _homes: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def method(self, backing: Backing, name: str, *arguments: Condition) -> Condition | None:
        """What the class method answers to these arguments; None where the class has none of that name."""
        self._steps = 0
        return self._method(backing, name, arguments, {}, None, 0)

    def function(self, file: str, name: str, arguments: Mapping[str, Condition]) -> Condition | None:
        """What the function or method in ``file`` answers; None where there is none."""
        function = self.tree.function(file, name)
        self._steps = 0
        return None if function is None else self._block(function.body, _Scope(file, dict(arguments)))

    def statements(self, file: str, body: Sequence[ast.stmt], local: Mapping[str, Condition]) -> Condition:
        """What these statements of ``file`` return."""
        self._steps = 0
        return self._block(body, _Scope(file, dict(local)))

    def value(self, file: str, node: ast.expr, local: dict[str, Condition]) -> Condition:
        """One expression of ``file``, with local names, to which it may add."""
        self._steps = 0
        return self._lift(node, _Scope(file, local))

    def backing(self, path: str) -> Backing | None:
        """The class at ``module.Class``; None where it is not there or made in a way that cannot be read."""
        found = self.classes.at(path)
        if len(found) == 1 and found[0] is not None:
            return Backing(self.classes.lineage(found[0]))
        module, _, name = path.rpartition(".")
        file = f"{module.partition('.')[2].replace('.', '/')}.py"
        tree = self.tree.module(file)
        made = (
            [s.value for s in tree.body if isinstance(s, ast.Assign) and dotted(s.targets[0]) == name] if tree else []
        )
        return self._made(file, made[-1]) if made and isinstance(made[-1], ast.Call) else None

    def _home(self, file: str, name: str) -> str | None:
        """The file that ``file`` imports ``name`` from."""
        if (file, name) not in self._homes:
            self._homes[file, name] = imported_from(self.tree, file, name)
        return self._homes[file, name]

    def _made(self, file: str, call: ast.Call) -> Backing | None:
        """The class that a function of the tree makes and returns, with that function's arguments."""
        maker = dotted(call.func) or ""
        home = self._home(file, maker)
        function = self.tree.function(home, maker) if home else None
        returned = {dotted(s.value) for s in function.body if isinstance(s, ast.Return) and s.value} if function else ()
        for statement in function.body if function else ():
            if home and isinstance(statement, ast.ClassDef) and statement.name in returned:
                scope = _Scope(file, {})
                closure = self._bound(function, call, scope) if function else {}
                return Backing(self.classes.lineage(Class(home, statement)), closure)
        return None

    # Functions

    def _method(
        self,
        backing: Backing,
        name: str,
        arguments: Sequence[Condition],
        keywords: Mapping[str, Condition],
        after: Class | None,
        depth: int,
    ) -> Condition | None:
        order = list(backing.lineage.classes)
        if after is not None:  # super()
            order = order[1 + next((i for i, cls in enumerate(order) if cls.node is after.node), len(order)) :]
        for owner in order:
            statement = owner.members().get(name)
            if isinstance(statement, ast.FunctionDef):
                parameters = [a.arg for a in statement.args.args if a.arg not in {"cls", "self"}]
                local = {**backing.closure, **_defaults(statement), **dict(zip(parameters, arguments, strict=False))}
                return self._block(statement.body, _Scope(owner.file, {**local, **keywords}, backing, owner, depth))
            if statement is not None:
                return ["?", f"{name} is no plain method"]
        return None

    def _bound(self, function: ast.FunctionDef, call: ast.Call, scope: _Scope) -> dict[str, Condition]:
        """The function's parameters with the arguments of a call."""
        parameters = [argument.arg for argument in function.args.args]
        given = dict(zip(parameters, (self._lift(a, scope) for a in call.args), strict=False))
        named = {k.arg: self._lift(k.value, scope) for k in call.keywords if k.arg is not None}
        return {**_defaults(function), **given, **named}

    # Statements

    def _block(self, body: Sequence[ast.stmt], scope: _Scope) -> Condition:
        for position, node in enumerate(body):
            self._steps += 1
            if self._steps > MAX_STEPS:
                return ["?", "too many branches"]
            rest = body[position + 1 :]
            match node:
                case ast.Return(value=value):
                    return NONE if value is None else self._lift(value, scope)
                case ast.Raise():
                    return RAISES
                case ast.If():
                    test = self._lift(node.test, scope)
                    if test[0] == "const":
                        return self._block([*(node.body if test[1] else node.orelse), *rest], scope)
                    ways = [
                        self._block([*way, *rest], replace(scope, local=dict(scope.local)))
                        for way in (node.body, node.orelse)
                    ]
                    return if_(test, *ways)
                case (
                    ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    self._assign(target, value, scope)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=arguments)):
                    if name in scope.local:
                        self._change(name, attr, [self._lift(argument, scope) for argument in arguments], scope)
                case ast.FunctionDef(name=name):
                    scope.local[name] = ["def", node]
                case ast.Try(body=tried, handlers=handlers) if not any(_returns(handler) for handler in handlers):
                    return self._block([*tried, *rest], scope)
                case ast.Expr() | ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Assert() | ast.AnnAssign():
                    pass
                case _:
                    return ["?", f"a {type(node).__name__.lower()} statement"]
        return NONE

    def _assign(self, target: ast.expr, value: ast.expr, scope: _Scope) -> None:
        if isinstance(target, ast.Tuple):
            for part in target.elts:
                scope.local[dotted(part) or "?"] = ["?", "a part of a value that is computed"]
        else:
            scope.local[dotted(target) or "?"] = self._lift(value, scope)

    def _change(self, name: str, method: str, arguments: list[Condition], scope: _Scope) -> None:
        """``list.append(value)`` and the like, of a local list."""
        before = scope.local[name]
        if before[0] != "const" or not isinstance(before[1], list):
            return
        after = list(before[1])
        match method, arguments:
            case "append", [["const", value]]:
                after.append(value)
            case "insert", [["const", int(index)], ["const", value]]:
                after.insert(index, value)
            case "extend", [["const", list(values)]]:
                after.extend(values)
            case _:
                scope.local[name] = ["?", f"{method} of a list"]
                return
        scope.local[name] = ["const", after]

    # Expressions

    def _lift(self, node: ast.expr, scope: _Scope) -> Condition:
        text = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Call) else ""
        if text in self.known:
            return ["const", self.known[text]]
        constant = literal(node)
        if isinstance(constant, bytes):
            return ["?", "bytes"]
        if constant is not None or (isinstance(node, ast.Constant) and node.value is None):
            return ["const", _plain(constant)]
        if text in WORDS and text not in scope.local:
            return ["name", WORDS[text]]
        match node:
            case ast.Name(id=name):
                return self._name(name, scope)
            case ast.Attribute(value=head, attr=attr):
                return self._attribute(head, attr, scope)
            case ast.BoolOp(op=op, values=parts):
                lifted = [self._lift(part, scope) for part in parts]
                if any(part[0] == "const" and not isinstance(part[1], bool) for part in lifted):
                    return ["?", "one of several values"]  # only truth values are folded
                return both(lifted) if isinstance(op, ast.And) else either(lifted)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return negated(self._lift(operand, scope))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return if_(self._lift(test, scope), self._lift(body, scope), self._lift(orelse, scope))
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                scope.local[name] = self._lift(value, scope)
                return scope.local[name]
            case ast.Compare(left=left, ops=ops, comparators=others):
                values = [self._lift(part, scope) for part in (left, *others)]
                return both(
                    [compared(COMPARED_BY[type(op)], *pair) for op, *pair in zip(ops, values, values[1:], strict=False)]
                )
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return listed([(isinstance(p, ast.Starred), self._lift(_unstarred(p), scope)) for p in parts])
            case ast.Dict(keys=keys, values=dict_values):
                return self._dict(keys, dict_values, scope)
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return ["%", self._lift(left, scope), self._lift(right, scope)]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                one, other = self._lift(left, scope), self._lift(right, scope)
                if one[0] == other[0] == "const":
                    return ["const", _ARITHMETIC[type(op)](one[1], other[1])]
            case ast.JoinedStr(values=pieces):
                written = [self._lift(p.value if isinstance(p, ast.FormattedValue) else p, scope) for p in pieces]
                if all(piece[0] == "const" for piece in written):
                    return ["const", "".join(str(piece[1]) for piece in written)]
                return A_TEXT
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name not in scope.local:
                member = self._lift(index, scope)  # of an enumeration, by its name
                if member[0] == "const" and isinstance(member[1], str) and name[:1].isupper():
                    return member
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(number))):
                base = self._lift(call, scope)
                if base[0] == "name":
                    return ["name", f"{base[1]}[{number}]"]
            case ast.Call():
                return self._call(node, scope)
        return ["?", type(node).__name__]

    def _dict(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr], scope: _Scope) -> Condition:
        pairs = [(self._lift(k, scope), self._lift(v, scope)) for k, v in zip(keys, values, strict=True) if k]
        if all(part[0] == "const" for pair in pairs for part in pair):
            return ["const", {str(key[1]): value[1] for key, value in pairs}]
        return ["?", "a dictionary that is computed"]

    def _name(self, name: str, scope: _Scope) -> Condition:
        if name in scope.local:
            return scope.local[name]
        home = scope.file
        for _ in range(MAX_DEPTH):
            value = self._assigned(home, name)
            if value is not None:
                found = self._lift(value, _Scope(home, {}, depth=scope.depth + 1))
                return found if found[0] == "const" else ["name", name]
            origin = self._home(home, name)
            if origin is None or origin == home:
                break
            home = origin
        if name[:1].isupper() or name[:1] == "_":
            candidates = self.classes.named(scope.file, name)
            if len(candidates) == 1 and candidates[0] is not None:
                return ["class", Backing(self.classes.lineage(candidates[0]))]
        return ["name", name]

    def _assigned(self, file: str, name: str) -> ast.expr | None:
        """What the module in ``file`` last assigns to ``name``."""
        return self.tree.assigned(file, name)

    def _attribute(self, head: ast.expr, attr: str, scope: _Scope) -> Condition:
        whole = dotted(ast.Attribute(head, attr))
        if whole in scope.local:
            return scope.local[whole]
        if isinstance(head, ast.Name) and head.id in {"cls", "self"} and scope.backing is not None:
            return self._class_attribute(scope.backing, attr, scope)
        if isinstance(head, ast.Name) and head.id == "torch" and attr in TYPES:
            return ["const", attr]
        if isinstance(head, ast.Name) and head.id not in scope.local and head.id[:1] in "_ABCDEFGHIJKLMNOPQRSTUVWXYZ":
            if attr.isupper() and head.id in ENUMERATIONS:
                return ["const", attr]
            member = enum_member(self.tree, scope.file, head.id, attr)
            if member is not None:
                return ["const", member]
        base = self._lift(head, scope)
        if base[0] == "class":
            return self._class_attribute(base[1], attr, scope)
        if base[0] != "name":
            return ["?", f"attribute {attr} of an expression"]
        return ["name", attr if base[1] in BUNDLES else f"{base[1]}.{attr}"]

    def _class_attribute(self, backing: Backing, attr: str, scope: _Scope) -> Condition:
        found = backing.lineage.find(attr)
        value = getattr(found[1], "value", None) if found else None
        if found is None or not isinstance(value, ast.expr) or scope.depth > MAX_DEPTH:
            return ["name", f"cls.{attr}"]
        return self._lift(value, _Scope(found[0].file, {}, depth=scope.depth + 1))

    # Calls

    def _call(self, node: ast.Call, scope: _Scope) -> Condition:
        match node:
            case ast.Call(func=ast.Name(id="bool" | "list" | "tuple" | "set" | "frozenset"), args=[one]):
                return self._lift(one, scope)
            case ast.Call(func=ast.Name(id="isinstance"), args=[one, ast.Name(id="str")]):
                found = self._lift(one, scope)
                return ["const", isinstance(found[1], str)] if found[0] == "const" else ["?", "isinstance"]
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(attr)), *_]):
                return self._attribute(owner, attr, scope)
            case ast.Call(func=ast.Name(id="get_args"), args=[one]):
                return self._type_values(one, scope)
            case ast.Call(func=ast.Name(id="DeviceCapability"), args=[_, _]):
                return listed([(False, self._lift(argument, scope)) for argument in node.args])
            case ast.Call(func=ast.Name(id="all" | "any" as kind), args=[ast.GeneratorExp(generators=[one]) as each]):
                parts = [self._lift(each.elt, replace(scope, local=local)) for local in self._loop(one, scope)]
                return (both(parts) if kind == "all" else either(parts)) if parts else ["?", f"{kind} of an expression"]
            case ast.Call(func=ast.Attribute(value=head, attr="get_path" | "get_class"), args=[]):
                return self._lift(head, scope)  # of a member of the registry
            case ast.Call(func=ast.Attribute(value=head, attr=attr)):
                return self._method_call(node, head, attr, scope)
            case ast.Call(func=ast.Name(id=name)):
                return self._function_call(node, name, scope)
        return ["?", "call of an expression"]

    def _type_values(self, node: ast.expr, scope: _Scope) -> Condition:
        """The values of a ``Literal`` type, those of types that are named in it included."""
        if isinstance(node, ast.Name):
            value = self._assigned(scope.file, node.id)
            if value is not None:
                return self._type_values(value, scope)
            home = self._home(scope.file, node.id)
            return self._type_values(node, replace(scope, file=home)) if home not in {None, scope.file} else _NO_TYPE
        if isinstance(node, ast.Constant):
            return ["const", [node.value]]
        parts = node.slice.elts if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else []
        if isinstance(node, ast.Subscript) and not parts:
            parts = [node.slice]
        values = [self._type_values(part, scope) for part in parts]
        if not values or any(value[0] != "const" for value in values):
            return _NO_TYPE
        return ["const", [each for value in values for each in value[1]]]

    def _loop(self, one: ast.comprehension, scope: _Scope) -> Iterator[dict[str, Condition]]:
        """The local names of each round of ``for x in (a, b)`` and ``for i, x in enumerate((a, b))``."""
        over, counted = one.iter, False
        if isinstance(over, ast.Call) and dotted(over.func) == "enumerate" and over.args:
            over, counted = over.args[0], True
        parts = over.elts if isinstance(over, ast.Tuple | ast.List) and not one.ifs else []
        targets = one.target.elts if isinstance(one.target, ast.Tuple) else [one.target]
        for index, part in enumerate(parts):
            values: list[Condition] = [["const", index]] if counted else []
            values.append(self._lift(part, scope))
            yield {**scope.local, **{dotted(t) or "?": v for t, v in zip(targets, values, strict=False)}}

    def _method_call(self, node: ast.Call, head: ast.expr, attr: str, scope: _Scope) -> Condition:
        arguments = [self._lift(argument, scope) for argument in node.args]
        asked = _asked_of_device(attr, arguments)
        if asked is not None:
            return asked
        keywords = {k.arg: self._lift(k.value, scope) for k in node.keywords if k.arg}
        is_super = isinstance(head, ast.Call) and dotted(head.func) == "super"
        own = is_super or (isinstance(head, ast.Name) and head.id in {"cls", "self"})
        if own and scope.backing is not None:
            found = None
            if scope.depth < MAX_DEPTH:
                after = scope.owner if is_super else None
                found = self._method(scope.backing, attr, arguments, keywords, after, scope.depth + 1)
            return found or ["?", f"call of {attr}"]
        base = self._lift(head, scope)
        if base[0] == "class" and scope.depth < MAX_DEPTH:
            found = self._method(base[1], attr, arguments, keywords, None, scope.depth + 1)
            return found or ["?", f"call of {attr}"]
        match base, attr, arguments:
            case ["const", str(text)], "startswith" | "endswith", [["const", str(part)]]:
                return ["const", getattr(text, attr)(part)]
            case ["const", str(text)], "upper" | "lower", []:
                return ["const", getattr(text, attr)()]
            case ["name", str(word)], "startswith" | "endswith", [["const", str(part)]] if word in self.domains:
                return ["in", base, ["const", [v for v in self.domains[word] if getattr(v, attr)(part)]]]
            case ["const", {}], "get", [_]:
                return NONE  # of a registry that the release itself leaves empty
            case ["name", str(word)], _, _:
                return _worded(f"{word}.{attr}", arguments, keywords)
        return ["?", f"call of {attr}"]

    def _function_call(self, node: ast.Call, name: str, scope: _Scope) -> Condition:
        local = scope.local.get(name)
        if local is not None and local[0] == "def":
            return self._block(
                local[1].body, replace(scope, local={**scope.local, **self._bound(local[1], node, scope)})
            )
        home = self._home(scope.file, name) or scope.file
        function = self.tree.function(home, name)
        keywords = {k.arg: self._lift(k.value, scope) for k in node.keywords if k.arg}
        if function is None:
            return _worded(name, [self._lift(argument, scope) for argument in node.args], keywords)
        given = self._bound(function, node, scope)
        usual = _defaults(function)
        worded = _worded(name, [], {word: value for word, value in given.items() if value != usual.get(word)})
        if scope.depth >= MAX_DEPTH:
            return worded
        for parameter, value in given.items():  # a word of which all values are known: those for which it holds
            if value[0] == "name" and value[1] in self.domains:
                values = self.domains[value[1]]
                ways = [self._inner(home, function, {**given, parameter: ["const", v]}, scope) for v in values]
                if all(way[0] == "const" and isinstance(way[1], bool) for way in ways):
                    return ["in", value, ["const", [v for v, way in zip(values, ways, strict=True) if way[1]]]]
        found = self._inner(home, function, given, scope)
        words = names(found) - {word for value in given.values() for word in names(value)}
        return found if not has_unread(found) and all(map(SPOKEN.fullmatch, words)) else worded

    def _inner(self, file: str, function: ast.FunctionDef, local: Mapping[str, Condition], scope: _Scope) -> Condition:
        return self._block(function.body, _Scope(file, dict(local), depth=scope.depth + 1))


def _asked_of_device(attr: str, arguments: Sequence[Condition]) -> Condition | None:
    """What a platform is asked of itself and its device (platforms/interface.py)."""
    number = arguments[0][1] if arguments and arguments[0][0] == "const" else None
    version = number if isinstance(number, list) else None
    if isinstance(number, int) and number > 9:  # 90 is 9.0
        version = [number // 10, number % 10]
    match attr:
        case "is_device_capability_family" if isinstance(number, int):
            return ["==", ["name", "capability.major"], ["const", number // 10]]
        case "is_device_capability" if version:
            return ["==", ["name", "capability"], ["const", version]]
        case "has_device_capability" if version:
            return [">=", ["name", "capability"], ["const", version]]
        case "get_cpu_architecture":
            return ["name", "cpu_architecture"]
        case "is_cuda_alike":
            return ["in", ["name", "platform"], ["const", ["cuda", "rocm"]]]
        case _ if attr.startswith("is_") and attr[3:] in PLATFORMS and not arguments:
            return ["==", ["name", "platform"], ["const", attr[3:]]]
    return None


def _worded(name: str, arguments: Sequence[Condition], keywords: Mapping[str, Condition]) -> Condition:
    """A call that is not followed, by the engine's words for it."""
    given = [("", value) for value in arguments] + [(f"{word}=", value) for word, value in keywords.items()]
    if any(value[0] not in {"const", "name"} for _, value in given):
        return ["?", f"call of {name}"]
    texts = [word + (repr(value[1]) if value[0] == "const" else value[1]) for word, value in given]
    return ["name", f"{name}({', '.join(texts)})"]


def _defaults(function: ast.FunctionDef) -> dict[str, Condition]:
    arguments = function.args
    plain = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    pairs = [*zip(plain, arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return {a.arg: ["const", _plain(literal(d))] for a, d in pairs}


def _returns(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


def _unstarred(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _plain(value: object) -> object:
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
