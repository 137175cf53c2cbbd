"""What a call answers: of Python's own functions, of methods of a class, of functions of the tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from specfix.engines.compiled import Condition
from specfix.engines.conditions import names
from specfix.engines.readers.annotations import Unreadable, allowed
from specfix.engines.readers.answers import platform
from specfix.engines.readers.answers.expressions import Expressions
from specfix.engines.readers.answers.scope import MAX_DEPTH, Backing, Scope, defaults
from specfix.engines.readers.folding import NONE, both, either, has_unread, listed
from specfix.engines.source.classes import Class
from specfix.engines.source.tree import SourceTree, dotted

# What a function that is followed may hang on, so that its own words say more than its call does.
SPOKEN: Final = re.compile(r"capability(\.m\w+)?|platform|device_\w+|cpu_architecture|envs\.\w+|[\w.]+\([^()]*\)")


class Calls:
    """``domains``: all values that a name of the conditions can have. ``run`` tells what statements return."""

    def __init__(
        self,
        tree: SourceTree,
        expressions: Expressions,
        domains: Mapping[str, Sequence[str]],
        run: Callable[[Sequence[ast.stmt], Scope], Condition],
    ) -> None:
        self._tree, self._expressions, self._domains, self._run = tree, expressions, domains, run
        self._lift = expressions.lift

    def call(self, node: ast.Call, scope: Scope) -> Condition:
        match node:
            case ast.Call(func=ast.Name(id="bool" | "list" | "tuple" | "set" | "frozenset"), args=[one]):
                return self._lift(one, scope)
            case ast.Call(func=ast.Name(id="isinstance"), args=[one, ast.Name(id="str")]):
                found = self._lift(one, scope)
                return ["const", isinstance(found[1], str)] if found[0] == "const" else ["?", "isinstance"]
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(attr)), *_]):
                return self._expressions.attribute(owner, attr, scope)
            case ast.Call(func=ast.Name(id="get_args"), args=[one]):
                return self._choices(one, scope)
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

    def method(
        self,
        backing: Backing,
        name: str,
        arguments: Sequence[Condition],
        keywords: Mapping[str, Condition],
        after: Class | None = None,
        depth: int = 0,
    ) -> Condition | None:
        """What the class method answers, of a class that comes ``after`` one of its bases; None where it has none."""
        order = list(backing.lineage.classes)
        if after is not None:  # super()
            order = order[1 + next((i for i, cls in enumerate(order) if cls.node is after.node), len(order)) :]
        for owner in order:
            statement = owner.members().get(name)
            if isinstance(statement, ast.FunctionDef):
                parameters = [a.arg for a in statement.args.args if a.arg not in {"cls", "self"}]
                local = {**backing.closure, **defaults(statement), **dict(zip(parameters, arguments, strict=False))}
                return self._run(statement.body, Scope(owner.file, {**local, **keywords}, backing, owner, depth))
            if statement is not None:
                return ["?", f"{name} is no plain method"]
        return None

    def bound(self, function: ast.FunctionDef, call: ast.Call, scope: Scope) -> dict[str, Condition]:
        """The function's parameters with the arguments of a call."""
        parameters = [argument.arg for argument in function.args.args]
        given = dict(zip(parameters, (self._lift(a, scope) for a in call.args), strict=False))
        named = {k.arg: self._lift(k.value, scope) for k in call.keywords if k.arg is not None}
        return {**defaults(function), **given, **named}

    def _choices(self, node: ast.expr, scope: Scope) -> Condition:
        """The values of a ``Literal`` type."""
        try:
            found = allowed(self._tree, scope.file, node)
        except Unreadable:
            return ["?", "values of a type"]
        return ["const", list(found.only)] if found.only and not found.nullable else ["?", "values of a type"]

    def _loop(self, one: ast.comprehension, scope: Scope) -> Iterator[dict[str, Condition]]:
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

    def _method_call(self, node: ast.Call, head: ast.expr, attr: str, scope: Scope) -> Condition:
        arguments = [self._lift(argument, scope) for argument in node.args]
        asked = platform.asked(attr, arguments)
        if asked is not None:
            return asked
        keywords = {k.arg: self._lift(k.value, scope) for k in node.keywords if k.arg}
        is_super = isinstance(head, ast.Call) and dotted(head.func) == "super"
        own = is_super or (isinstance(head, ast.Name) and head.id in {"cls", "self"})
        if own and scope.backing is not None:
            found = None
            if scope.depth < MAX_DEPTH:
                after = scope.owner if is_super else None
                found = self.method(scope.backing, attr, arguments, keywords, after, scope.depth + 1)
            return found or ["?", f"call of {attr}"]
        base = self._lift(head, scope)
        if base[0] == "class" and scope.depth < MAX_DEPTH:
            found = self.method(base[1], attr, arguments, keywords, None, scope.depth + 1)
            return found or ["?", f"call of {attr}"]
        match base, attr, arguments:
            case ["const", str(text)], "startswith" | "endswith", [["const", str(part)]]:
                return ["const", getattr(text, attr)(part)]
            case ["const", str(text)], "upper" | "lower", []:
                return ["const", getattr(text, attr)()]
            case ["name", str(word)], "startswith" | "endswith", [["const", str(part)]] if word in self._domains:
                return ["in", base, ["const", [v for v in self._domains[word] if getattr(v, attr)(part)]]]
            case ["const", {}], "get", [_]:
                return NONE  # of a registry that the release itself leaves empty
            case ["name", str(word)], _, _:
                return _worded(f"{word}.{attr}", arguments, keywords)
        return ["?", f"call of {attr}"]

    def _function_call(self, node: ast.Call, name: str, scope: Scope) -> Condition:
        local = scope.local.get(name)
        if local is not None and local[0] == "def":
            inner = {**scope.local, **self.bound(local[1], node, scope)}
            return self._run(local[1].body, replace(scope, local=inner))
        home = self._expressions.home(scope.file, name) or scope.file
        function = self._tree.function(home, name)
        keywords = {k.arg: self._lift(k.value, scope) for k in node.keywords if k.arg}
        if function is None:
            return _worded(name, [self._lift(argument, scope) for argument in node.args], keywords)
        given = self.bound(function, node, scope)
        usual = defaults(function)
        worded = _worded(name, [], {word: value for word, value in given.items() if value != usual.get(word)})
        if scope.depth >= MAX_DEPTH:
            return worded

        def answer(given: Mapping[str, Condition]) -> Condition:
            return self._run(function.body, Scope(home, dict(given), depth=scope.depth + 1))

        for parameter, value in given.items():  # a word of which all values are known: those for which it holds
            if value[0] == "name" and value[1] in self._domains:
                values = self._domains[value[1]]
                ways = [answer({**given, parameter: ["const", v]}) for v in values]
                if all(way[0] == "const" and isinstance(way[1], bool) for way in ways):
                    return ["in", value, ["const", [v for v, way in zip(values, ways, strict=True) if way[1]]]]
        found = answer(given)
        words = names(found) - {word for value in given.values() for word in names(value)}
        return found if not has_unread(found) and all(map(SPOKEN.fullmatch, words)) else worded


def _worded(name: str, arguments: Sequence[Condition], keywords: Mapping[str, Condition]) -> Condition:
    """A call that is not followed, by the engine's words for it."""
    given = [("", value) for value in arguments] + [(f"{word}=", value) for word, value in keywords.items()]
    if any(value[0] not in {"const", "name"} for _, value in given):
        return ["?", f"call of {name}"]
    texts = [word + (repr(value[1]) if value[0] == "const" else value[1]) for word, value in given]
    return ["name", f"{name}({', '.join(texts)})"]
